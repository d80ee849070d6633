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
    has_pressure = True

    def __init__(self, grid: Grid, terms: int, seed: int, density: float, viscosity: float) -> None:
        draw = np.random.Generator(np.random.Philox(seed))
        dim = grid.dim
        self.density, self.viscosity = density, viscosity
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
        """Work on this grid of points from now on: x, y[, z] as `Grid.coordinates` gives them."""
        x, *y, z = (values.reshape(-1) for values in points)
        self._coordinates = (x, y[0] if y else np.zeros(1), z)
        return self

    def _evaluate(self, wanted: int, t: float, out: np.ndarray) -> None:
        assert out.shape[1:] == tuple(map(len, self._coordinates))
        evaluate(
            wanted,
            *self._coordinates,
            t,
            self._b,
            self._v,
            self._c,
            self._amplitude,
            self._weight,
            self.density,
            self.viscosity,
            out,
        )

    def velocity(self, t: float, out: np.ndarray) -> None:
        """u at time t, (component, x, y, z)."""
        self._evaluate(VELOCITY, t, out)

    def pressure(self, t: float, out: np.ndarray) -> None:
        """p at time t, (x, y, z)."""
        self._evaluate(PRESSURE, t, out[None])

    def fill(self, t: float, u: np.ndarray, out: np.ndarray) -> None:
        """The force density at time t, (component, x, y, z)."""
        self._evaluate(FORCE, t, out)


VELOCITY, PRESSURE, FORCE = 0, 1, 2


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
def evaluate(wanted, x, y, z, t, b, v, c, amplitude, weight, density, viscosity, out):
    """u, p or the force at every point, (component, x, y, z)."""
    terms, dim = amplitude.shape
    place, u, f, gradient = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for ix in range(len(x)):
        for iy in range(len(y)):
            for iz in range(len(z)):
                place[0], place[1], place[dim - 1] = x[ix], y[iy], z[iz]
                u[:], f[:], gradient[:] = 0.0, 0.0, 0.0
                p = 0.0
                for n in range(terms):
                    if wanted != PRESSURE:
                        phase, square = v[0, n] * t, 0.0
                        for a in range(dim):
                            phase += b[0, n, a] * place[a]
                            square += b[0, n, a] ** 2
                        _, d1, d2, d3 = profile(phase, c[0, n, 0], c[0, n, 1], c[0, n, 2])
                        for a in range(dim):
                            w = amplitude[n, a]
                            u[a] += w * d1
                            f[a] += w * (density * v[0, n] * d2 - viscosity * square * d3)
                            for other in range(dim):
                                gradient[a, other] += w * b[0, n, other] * d2
                    if wanted != VELOCITY:
                        phase = v[1, n] * t
                        for a in range(dim):
                            phase += b[1, n, a] * place[a]
                        d0, d1, _, _ = profile(phase, c[1, n, 0], c[1, n, 1], c[1, n, 2])
                        p += weight[n] * d0
                        for a in range(dim):
                            f[a] += weight[n] * b[1, n, a] * d1
                for a in range(len(out)):
                    if wanted == FORCE:
                        value = f[a]
                        for other in range(dim):
                            value += density * u[other] * gradient[a, other]
                    else:
                        value = u[a] if wanted == VELOCITY else p
                    out[a, ix, iy, iz] = value
