"""Ways of coupling on an oscillator, r' = u, u' = −ω² r: none grows, orders are as stated."""

import numpy as np
import pytest

from hpcsim.coupling.steps import COUPLINGS

ORDER = {"midpoint": 2, "forward-backward": 1}


class Spring:
    """Stands for rods: one node on a spring to the origin, ω = 1."""

    def __init__(self):
        self.r, self.frames = np.array([[1.0, 0.0, 0.0]]), np.eye(3)[None].copy()
        self.force, self.couple = np.zeros((1, 3)), np.zeros((1, 3))

    def load(self, t):
        self.force[:] = -self.r

    def move(self, r, frames, way, turn):
        self.r[:] = r + way


class Everywhere:
    """Stands for the weights of a grid: the velocity is the same at all places."""

    def place(self, r):
        pass

    def interpolate(self, u):
        return u, np.zeros((1, 3, 3))

    def spread(self, force, couple, factor, out):
        out += factor * force


def swing(name, h, steps):
    """(r, u) after so many steps of h; the fluid has mass 1 and no viscosity."""
    spring = Spring()
    coupling = COUPLINGS[name](spring, Everywhere())
    u, f = np.zeros((1, 3)), np.zeros((1, 3))
    for step in range(steps):
        coupling.begin(step * h, h)
        coupling.fill(step * h, u, f)
        u = u + h * f
    coupling.complete(u)
    return spring.r[0, 0], u[0, 0], coupling.worked


@pytest.mark.parametrize("name", COUPLINGS)
@pytest.mark.parametrize("h", [0.1, 1.0, 1.9])
def test_the_oscillator_does_not_grow(name, h):
    """10⁴ steps below the limit ω h = 2: both are conjugate to a rotation, so bounded for ever.

    The bound is that of the ellipse, 1/√(1 − (h/2)²), with the start anywhere on it. The explicit
    trapezoid would grow by h⁴/8 per step, by e¹²⁵⁰ at h = 1.
    """
    r, u, _ = swing(name, h, 10_000)
    assert np.hypot(r, u) < 2 / np.sqrt(1 - (h / 2) ** 2)


@pytest.mark.parametrize("name", COUPLINGS)
def test_beyond_its_limit_it_does(name):
    r, u, _ = swing(name, 2.1, 200)
    assert np.hypot(r, u) > 1e6


@pytest.mark.parametrize("name", COUPLINGS)
def test_order(name):
    errors = []
    for steps in (100, 200):
        r, u, worked = swing(name, 1.0 / steps, steps)
        errors.append(np.hypot(r - np.cos(1.0), u + np.sin(1.0)))
        assert worked == pytest.approx(0.5 * u**2, abs=2 / steps)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDER[name], abs=0.05)
