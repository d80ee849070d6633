"""Time and account of energy of a flow: what a restart needs besides the velocity."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np


@dataclass
class Clock:
    """Energies in J; `given`: what the flow had at the start; `worked_size`: Σ |work|."""

    time: float = 0.0
    dissipated: float = 0.0
    worked: float = 0.0
    worked_size: float = 0.0
    given: float = 0.0
    next_step: float = 0.0  #: what error control takes next [s]; 0: all of dt
    latest_step: float = 0.0  #: [s]
    steps: float = 0.0

    @classmethod
    def unpacked(cls, numbers: np.ndarray) -> Clock:
        """From the numbers of a checkpoint."""
        return cls(*map(float, numbers))

    @property
    def packed(self) -> np.ndarray:
        """As numbers, for a checkpoint."""
        return np.array(astuple(self))

    @property
    def most(self) -> float:
        """More energy than that the flow cannot have."""
        return self.given + self.worked_size
