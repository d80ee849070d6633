"""A rank's share of a global array: how models tell the I/O layer who holds what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Share:
    """Rows `start …` of a global array with `total` rows along `axis`; axis None: whole everywhere.

    Blocks of ensemble members, slabs of grid planes and replicated data are all of this form.
    """

    local: np.ndarray
    axis: int | None = None
    start: int = 0
    total: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the global array."""
        shape = list(self.local.shape)
        if self.axis is not None:
            shape[self.axis] = self.total
        return tuple(shape)

    @property
    def region(self) -> tuple[slice, ...]:
        """Where the local array sits in the global one."""
        slices = [slice(0, length) for length in self.local.shape]
        if self.axis is not None:
            slices[self.axis] = slice(self.start, self.start + self.local.shape[self.axis])
        return tuple(slices)
