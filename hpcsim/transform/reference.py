"""mpi4py-fft's own distributed transform behind the interface of `SlabTransform`.

Slow and simple: what the fast one is compared with in tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.transform.slab import kept_modes, three

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks


class ReferenceTransform:
    """`PFFT` on slabs along the first axis; not for grids with fewer planes than ranks."""

    def __init__(self, shape: Sequence[int], ranks: Ranks) -> None:
        from mpi4py_fft import PFFT, newDistArray

        self.shape = three(shape)
        self.ranks = ranks
        self.points = int(np.prod(self.shape))
        axes = (0, 1, 2) if len(shape) == 3 else (0, 2)
        self._pfft = PFFT(ranks.comm, self.shape, axes=axes, dtype="d", grid=(-1, 1, 1))
        self._space = newDistArray(self._pfft, False)
        self._modes = newDistArray(self._pfft, True)
        planes, *_ = self._pfft.local_slice(False)
        self.start, self.count = planes.start, planes.stop - planes.start
        real = (False, False, True)
        self.modes = tuple(
            kept_modes(n, truncated=False, real=half)[part]
            for n, half, part in zip(self.shape, real, self._pfft.local_slice(True), strict=True)
        )

    def physical(self, components: int, halo: int = 0) -> np.ndarray:
        """A new physical array, zero."""
        return np.zeros((components, self.count + 2 * halo, *self.shape[1:]))

    def spectral(self, components: int) -> np.ndarray:
        """A new spectral array, zero."""
        x, y, z = (len(modes) for modes in self.modes)
        return np.zeros((x, components, y, z), np.complex128)

    def forward(self, physical: np.ndarray, spectral: np.ndarray) -> None:
        """û = Σ u exp(−i k·x)."""
        for index, component in enumerate(physical):
            self._space[:] = component
            self._pfft.forward(self._space, self._modes, normalize=False)
            spectral[:, index] = self._modes

    def backward(self, spectral: np.ndarray, physical: np.ndarray) -> None:
        """u = Σ û exp(i k·x)."""
        for index, component in enumerate(physical):
            self._modes[:] = spectral[:, index]
            self._pfft.backward(self._modes, self._space, normalize=False)
            component[:] = self._space
