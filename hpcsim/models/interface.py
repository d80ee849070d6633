"""What a model gives to the driver. Everything else (loop, output, restart) is not its business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from hpcsim.case.schema import Case
from hpcsim.parallel.share import Share

if TYPE_CHECKING:
    from hpcsim.output.run import Run
    from hpcsim.parallel.ranks import Ranks


@dataclass(frozen=True)
class Quantity:
    """A dataset of `output.h5`: its dimensions (without the frame axis), units and attributes."""

    dims: tuple[str, ...]
    units: str
    attributes: tuple[tuple[str, Any], ...] = ()


class Model(Protocol):
    """A simulation: set up from a settled case, advanced in steps, seen through shares of arrays.

    Names of arrays are paths in `output.h5`; the first part is the group, which gets its own `t`.
    """

    schema: ClassVar[type[Case]]
    #: The key that says how large a case is.
    size_key: ClassVar[str]
    quantities: Mapping[str, Quantity]

    def __init__(self, case: Any, ranks: Ranks) -> None: ...

    @classmethod
    def problems(cls, case: Any) -> list[tuple[str, str]]:
        """What is wrong between keys: (dotted key, text that goes behind it)."""
        ...

    @classmethod
    def settle(cls, case: Any) -> tuple[Case, list[str]]:
        """The case with everything left open decided (except dt), and what to tell the user."""
        ...

    @classmethod
    def remarks(cls, case: Any, ranks: int) -> list[str]:
        """What to tell the user about this case on so many ranks."""
        ...

    @classmethod
    def time_limits(cls, case: Any) -> dict[str, float]:
        """Upper limits of dt [s], by name; "auto" takes the smallest."""
        ...

    @classmethod
    def memory(cls, case: Any, ranks: int) -> int:
        """Bytes that a rank will need."""
        ...

    def prepare(self) -> None:
        """Compile every hot loop, or load it from the cache; on rank 0 first, so no exchange."""
        ...

    def begin(self) -> list[str]:
        """Set the state to its start, on all ranks together; what to tell the user of it."""
        ...

    def advance(self, step: int, count: int) -> None:
        """Do `count` steps from step number `step`; the bits do not depend on how a run is cut."""
        ...

    def trouble(self) -> str:
        """What has blown up on this rank, and what to change; empty while all is well."""
        ...

    def state(self) -> dict[str, Share]:
        """Everything that a restart needs, as shares of global arrays."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over this rank's share of a saved state."""
        ...

    def constants(self) -> dict[str, Share]:
        """Arrays that do not change in time."""
        ...

    def frame(self) -> dict[str, Share]:
        """Arrays of the present frame; those of group `series` are scalars."""
        ...

    def figures(self, run: Run) -> dict[str, float]:
        """Numbers for the summary, from what has been recorded; called on all ranks."""
        ...

    @staticmethod
    def draw_pictures(run: Run, figure: Any) -> None:
        """Draw what fits the model into a matplotlib figure."""
        ...
