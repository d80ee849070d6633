"""Random analytic flows for manufactured solutions: sums of plane waves of a smooth profile.

    η(φ) = exp(c₁ (cos(φ + c₂) − 1)) cos(φ + c₃),   φ = b·x + v t,   b = 2π m / box, m integers
    u = Σ_i U_i b_i η'(φ_i)   with U_i antisymmetric, so div u = 0;   p = Σ_i a_i η(φ_i)

The force that makes them a solution follows in closed form:
f = ρ (u_t + (u·∇)u) + ∇p − μ Δu.
"""

from __future__ import annotations

import math

import numpy as np

from hpcsim.compiled import inlined, kernel
from hpcsim.fluid.grid import Grid

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False


class RandomFlow:
    """A velocity and a pressure that are exact once their force acts; also that force."""

    steady = False

    def __init__(self, grid: Grid, terms: int, seed: int, density: float, viscosity: float) -> None:
        draw = np.random.Generator(np.random.Philox(seed))
        dim = grid.dim
        self.density, self.viscosity = density, viscosity
        self.axes = np.array(grid.axes)
        length = min(grid.box)
        self._b = np.zeros((2, terms, dim))
        for index in np.ndindex(2, terms):
            m = np.zeros(dim, np.int64)
            while not m.any():
                m = draw.integers(-2, 3, dim)
            self._b[index] = 2 * np.pi * m / np.array(grid.box)
        twist = draw.uniform(-1, 1, (terms, dim, dim))
        amplitude = np.einsum("tij,tj->ti", twist - twist.swapaxes(1, 2), self._b[0])
        # terms of the velocity have the size of 1 m/s, those of the pressure 1 Pa
        self._amplitude = amplitude / np.maximum(np.linalg.norm(amplitude, axis=1), 1e-3)[:, None]
        self._weight = draw.uniform(-1, 1, terms) * density
        self._v = 2 * np.pi / length * draw.uniform(-1, 1, (2, terms))
        self._c = draw.uniform(0, 2 * np.pi, (2, terms, 3))
        self._c[..., 0] = draw.uniform(1.0, 1.5, (2, terms))

    def at(self, points: list[np.ndarray]) -> RandomFlow:
        """Work at these points from now on: coordinates that broadcast to a field."""
        shape = np.broadcast_shapes(*(x.shape for x in points))
        self._points = [np.ascontiguousarray(np.broadcast_to(x, shape)) for x in points]
        dim = len(points)
        self._u, self._p, self._f = (
            np.empty((dim, *shape)),
            np.empty(shape),
            np.empty((dim, *shape)),
        )
        return self

    def _evaluate(self, t: float) -> None:
        evaluate(
            np.array(self._points).reshape(len(self._points), -1),
            t,
            self._b,
            self._v,
            self._c,
            self._amplitude,
            self._weight,
            self.density,
            self.viscosity,
            self._u.reshape(len(self._u), -1),
            self._p.reshape(-1),
            self._f.reshape(len(self._f), -1),
        )

    def velocity(self, t: float, out: np.ndarray) -> None:
        """u at time t, (component, x, y, z)."""
        self._evaluate(t)
        out[:] = self._u

    def pressure(self, t: float, out: np.ndarray) -> None:
        """p at time t, (x, y, z)."""
        self._evaluate(t)
        out[:] = self._p

    def fill(self, t: float, out: np.ndarray) -> None:
        """The force density at time t, (component, x, y, z)."""
        self._evaluate(t)
        out[:] = self._f


@inlined
def profile(phase, c1, c2, c3):
    """η, η', η'', η''' at a phase."""
    e = math.exp(c1 * (math.cos(phase + c2) - 1.0))
    s, k = math.sin(phase + c2), math.cos(phase + c2)
    e1 = -c1 * s * e
    e2 = (c1 * c1 * s * s - c1 * k) * e
    e3 = (-(c1**3) * s**3 + 3 * c1 * c1 * s * k + c1 * s) * e
    cosine, sine = math.cos(phase + c3), math.sin(phase + c3)
    return (
        e * cosine,
        e1 * cosine - e * sine,
        e2 * cosine - 2 * e1 * sine - e * cosine,
        e3 * cosine - 3 * e2 * sine - 3 * e1 * cosine + e * sine,
    )


@kernel
def evaluate(points, t, b, v, c, amplitude, weight, density, viscosity, u, p, f):
    """u, p and the force at every point; points (component, point)."""
    dim, terms = len(points), len(weight)
    gradient = [[0.0] * 3 for _ in range(3)]
    for i in range(points.shape[1]):
        for a in range(dim):
            u[a, i] = 0.0
            f[a, i] = 0.0
            for other in range(dim):
                gradient[a][other] = 0.0
        p[i] = 0.0
        for n in range(terms):
            phase, square = v[0, n] * t, 0.0
            for a in range(dim):
                phase += b[0, n, a] * points[a, i]
                square += b[0, n, a] ** 2
            _, d1, d2, d3 = profile(phase, c[0, n, 0], c[0, n, 1], c[0, n, 2])
            for a in range(dim):
                w = amplitude[n, a]
                u[a, i] += w * d1
                f[a, i] += w * (density * v[0, n] * d2 - viscosity * square * d3)
                for other in range(dim):
                    gradient[a][other] += w * b[0, n, other] * d2
            phase = v[1, n] * t
            for a in range(dim):
                phase += b[1, n, a] * points[a, i]
            d0, d1, _, _ = profile(phase, c[1, n, 0], c[1, n, 1], c[1, n, 2])
            p[i] += weight[n] * d0
            for a in range(dim):
                f[a, i] += weight[n] * b[1, n, a] * d1
        for a in range(dim):
            for other in range(dim):
                f[a, i] += density * u[other, i] * gradient[a][other]
