"""Rotations against a matrix exponential and differences, over all angles."""

import numpy as np
import pytest

from hpcsim.compiled import kernel
from hpcsim.rod import rotations

ANGLES = [
    0.0,
    1e-9,
    1e-5,
    9e-5,
    1.1e-4,
    1e-3,
    0.04,
    0.24,
    0.26,
    0.9,
    2.0,
    np.pi - 1e-3,
    np.pi,
    4.0,
    6.0,
]


def cross(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def expm(matrix):
    """Matrix exponential by its series in extended precision, squared five times."""
    part, total = np.eye(3, dtype=np.longdouble), np.zeros((3, 3), np.longdouble)
    for n in range(1, 30):
        total += part
        part = part @ (matrix / np.longdouble(32)) / n
    for _ in range(5):
        total = total @ total
    return total.astype(float)


def direction(seed):
    v = np.random.default_rng(seed).normal(size=3)
    return v / np.linalg.norm(v)


@kernel
def applied(x, r, y, out, slope):
    rotations.rotate(x, r, out)
    rotations.dexpinv_slope(x, y, slope)
    return rotations.dexpinv(x, y)


def evaluate(x, r=None, y=None):
    out, slope = np.empty((3, 3)), np.empty((3, 3))
    found = applied(x, np.eye(3) if r is None else r, np.zeros(3) if y is None else y, out, slope)
    return out, np.array(found), slope


@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_is_the_matrix_exponential(angle):
    x = angle * direction(1)
    r = np.random.default_rng(2).normal(size=(3, 3))
    np.testing.assert_allclose(evaluate(x, r)[0], expm(cross(x)) @ r, rtol=0, atol=1e-14)
    made = evaluate(x)[0]
    np.testing.assert_allclose(made @ made.T, np.eye(3), rtol=0, atol=1e-15 * 4)


@pytest.mark.parametrize("angle", ANGLES)
def test_dexpinv_inverts_the_differential(angle):
    """dexp(x) = Σ [x]^n/(n + 1)! by its series, which needs no closed form."""
    x, y = angle * direction(3), direction(4)
    dexp, power = np.zeros((3, 3)), np.eye(3)
    for n in range(1, 60):
        dexp += power
        power = power @ cross(x) / (n + 1)
    found = evaluate(x, y=y)[1]
    room = 1e-14 * np.linalg.cond(dexp)
    np.testing.assert_allclose(dexp @ found, y, rtol=0, atol=room)


@pytest.mark.parametrize("angle", ANGLES)
def test_slope_of_dexpinv(angle):
    """By differences of the fourth order: error 1e-12 of its growth near 2π."""
    x, y, h = angle * direction(5), direction(6), 1e-3
    slope = evaluate(x, y=y)[2]
    expected = np.empty((3, 3))
    for j, e in enumerate(np.eye(3)):
        a, b, c, d = (evaluate(x + k * h * e, y=y)[1] for k in (-2, -1, 1, 2))
        expected[:, j] = (a - 8 * b + 8 * c - d) / (12 * h)
    np.testing.assert_allclose(slope, expected, rtol=1e-7, atol=1e-11)


def test_coefficients_join_where_series_end():
    """Series and closed forms agree at the angles where one takes over from the other."""
    y = direction(7)
    for angle in (rotations.TINY, rotations.SERIES):
        below, above = (
            evaluate(angle * (1 + side) * direction(8), y=y) for side in (-1e-15, 1e-15)
        )
        for one, other in zip(below, above, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-14)


def test_frames_stay_orthonormal_over_many_turns():
    """10⁵ turns by random angles: R stays a rotation to 1e-13."""
    frames = np.array([np.eye(3)])
    out = np.empty_like(frames)
    turns = np.random.default_rng(9).normal(size=(100_000, 1, 3))
    for theta in turns:
        rotations.turn(theta, frames, out)
        frames, out = out, frames
    np.testing.assert_allclose(frames[0] @ frames[0].T, np.eye(3), rtol=0, atol=1e-13)
    assert np.linalg.det(frames[0]) == pytest.approx(1.0, abs=1e-13)


def test_turns_about_one_axis_add_up():
    """In a plane dexp is the identity: exp(a) exp(b) = exp(a + b), and dexpinv(x) y = y."""
    z = np.array([0.0, 0.0, 1.0])
    frames, out = np.array([np.eye(3)]), np.empty((1, 3, 3))
    for angle in (0.3, 1.1, -0.2):
        rotations.turn(angle * z[None], frames, out)
        frames, out = out, frames
    np.testing.assert_allclose(frames[0], expm(cross(1.2 * z)), rtol=0, atol=1e-15 * 4)
    np.testing.assert_allclose(evaluate(1.7 * z, y=0.4 * z)[1], 0.4 * z, rtol=0, atol=1e-16)
