"""Explicit Runge-Kutta tableaux: data only, one entry each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Row = tuple[str | int, ...]


@dataclass(frozen=True)
class Tableau:
    """k_i = f(t + c_i h, y + h Σ_j a_ij k_j),  y ← y + h Σ_i b_i k_i."""

    order: int
    rows: tuple[Row, ...]
    weights: Row

    @property
    def a(self) -> np.ndarray:
        """Stage coefficients (stage, stage), strictly lower triangular."""
        a = np.zeros((len(self.weights),) * 2)
        for i, row in enumerate(self.rows, start=1):
            a[i, : len(row)] = [float(Fraction(value)) for value in row]
        return a

    @property
    def b(self) -> np.ndarray:
        """Weights (stage)."""
        return np.array([float(Fraction(value)) for value in self.weights])

    @property
    def c(self) -> np.ndarray:
        """Nodes (stage): row sums of a."""
        sums = [Fraction(0)] + [sum(map(Fraction, row), Fraction(0)) for row in self.rows]
        return np.array([float(value) for value in sums])


EXPLICIT = {
    "euler": Tableau(1, (), (1,)),
    "midpoint": Tableau(2, (("1/2",),), (0, 1)),
    "heun": Tableau(2, ((1,),), ("1/2", "1/2")),
    "rk3": Tableau(3, (("1/2",), (-1, 2)), ("1/6", "2/3", "1/6")),
    "rk4": Tableau(4, (("1/2",), (0, "1/2"), (0, 0, 1)), ("1/6", "1/3", "1/3", "1/6")),
}
