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
        theta = 2 * np.pi * k / n
        if self.truncated:
            return theta / h
        s = sum(2 * d * np.sin(m * theta) for m, d in enumerate(self.gradient, start=1)) / h
        return np.where((k == 0) | (2 * k == n), 0.0, s)

    def laplacian_symbol(self, k: np.ndarray, n: int, h: float) -> np.ndarray:
        """λ(k) ≥ 0 [1/m²]; the Laplacian multiplies by −λ."""
        theta = 2 * np.pi * k / n
        if self.truncated:
            return (theta / h) ** 2
        # Σ l_m = 0 over the stencil, so each cosine may lose 1: small λ keep their digits
        terms = (4 * w * np.sin(m * theta / 2) ** 2 for m, w in enumerate(self.laplacian) if m)
        return sum(terms) / h**2 + np.zeros(len(k))

    def largest_gradient(self, h: float) -> float:
        """Upper bound of |s| [1/m]."""
        if self.truncated:
            return 2 * np.pi / (3 * h)
        theta = np.linspace(0, np.pi, 1001)
        return float(max(sum(2 * d * np.sin(m * theta) for m, d in enumerate(self.gradient, 1)))) / h

    def largest_laplacian(self, h: float) -> float:
        """Upper bound of λ [1/m²]."""
        if self.truncated:
            return (2 * np.pi / (3 * h)) ** 2
        theta = np.linspace(0, np.pi, 1001)
        terms = (4 * w * np.sin(m * theta / 2) ** 2 for m, w in enumerate(self.laplacian) if m)
        return float(max(sum(terms))) / h**2


OPERATORS = {
    "centred": Operators(2, (1 / 2,), (-2, 1)),
    "fourth": Operators(4, (2 / 3, -1 / 12), (-5 / 2, 4 / 3, -1 / 12)),
    "spectral": Operators(None),
}
