"""Spatial operators as data: each is given once, and its symbols and stencils follow.

    gradient    D f   = Σ_m d_m (f₊ₘ − f₋ₘ) / h           symbol  i s,  s = Σ_m 2 d_m sin(mθ) / h
    Laplacian   L f   = Σ_m l_m (f₊ₘ + f₋ₘ) / h²,  m ≥ 0   symbol  −λ

with θ = 2πk/n. The stencil of the gradient is antisymmetric, so divergence and gradient are exact
negative adjoints. `spectral` has s = 2πk/(n h), λ = s² on the modes |k| < n/3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Operators:
    """Weights d_1, d_2, … of the gradient and l_0, l_1, … of the Laplacian; none: spectral."""

    order: int | None
    gradient: tuple[float, ...] = ()
    laplacian: tuple[float, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether only modes |k| < n/3 are kept."""
        return not self.gradient

    @property
    def width(self) -> int:
        """Planes that the stencil of the gradient reaches."""
        return len(self.gradient)

    def gradient_symbol(self, k: np.ndarray, n: int, h: float) -> np.ndarray:
        """s(k) [1/m], real; exactly zero where k is 0 or n/2."""
        s = self._gradient_at(2 * np.pi * k / n) / h
        return np.where((k == 0) | (2 * k == n), 0.0, s)

    def laplacian_symbol(self, k: np.ndarray, n: int, h: float) -> np.ndarray:
        """λ(k) ≥ 0 [1/m²]; the Laplacian multiplies by −λ."""
        return self._laplacian_at(2 * np.pi * k / n) / h**2

    def largest_laplacian(self, h: float) -> float:
        """Upper bound of λ [1/m²]."""
        return float(self._laplacian_at(np.linspace(0, self._highest, 1001)).max()) / h**2

    @property
    def _highest(self) -> float:
        """Largest θ that is kept."""
        return 2 * np.pi / 3 if self.truncated else np.pi

    def _gradient_at(self, theta: np.ndarray) -> np.ndarray:
        if self.truncated:
            return theta
        m = np.arange(1, len(self.gradient) + 1)
        return 2 * np.sin(np.multiply.outer(theta, m)) @ np.array(self.gradient)

    def _laplacian_at(self, theta: np.ndarray) -> np.ndarray:
        if self.truncated:
            return theta**2
        # the weights sum to zero, so 1 − cos may stand for −cos: small λ keep their digits
        m = np.arange(1, len(self.laplacian))
        return 4 * np.sin(np.multiply.outer(theta, m) / 2) ** 2 @ np.array(self.laplacian[1:])


OPERATORS = {
    "centred": Operators(2, (1 / 2,), (-2, 1)),
    "fourth": Operators(4, (2 / 3, -1 / 12), (-5 / 2, 4 / 3, -1 / 12)),
    "spectral": Operators(None),
}
