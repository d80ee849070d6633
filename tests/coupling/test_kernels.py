"""All kernels against what is known of them: moments, continuity, sums, derivatives."""

import numpy as np
import pytest
from scipy.integrate import quad

from hpcsim.compiled import kernel
from hpcsim.coupling.kernels import KERNELS, value_and_slope

#: Positions between grid points, and grid points around them.
X = np.linspace(0, 1, 1001)[:-1] + 1e-4 / 3
POINTS = np.arange(-5, 7)


@kernel
def sampled(table, x, values, slopes):
    for i in range(len(x)):
        values[i], slopes[i] = value_and_slope(table, x[i])


def phi(name, x):
    x = np.atleast_1d(np.asarray(x, float))
    values, slopes = np.empty(x.size), np.empty(x.size)
    sampled(KERNELS[name].table, x.ravel(), values, slopes)
    return values.reshape(x.shape), slopes.reshape(x.shape)


@pytest.mark.parametrize("name", KERNELS)
def test_moments(name):
    """Σ_l l^m φ(x − l) = x^m for exactly the stated number of m."""
    weights = phi(name, X[:, None] - POINTS)[0]
    errors = [np.abs((POINTS**m * weights).sum(1) - X**m).max() for m in range(7)]
    found = next(m for m, error in enumerate(errors) if error > 1e-11)
    assert found == KERNELS[name].moments


@pytest.mark.parametrize("name", KERNELS)
def test_sums_over_even_and_odd_points_and_of_squares(name):
    entry = KERNELS[name]
    weights = phi(name, X[:, None] - POINTS)[0]
    uneven = max(np.abs(weights[:, side == POINTS % 2].sum(1) - 0.5).max() for side in (0, 1))
    assert (uneven < 1e-12) == entry.balanced
    squares = (weights**2).sum(1)
    if entry.squares is None:
        assert np.ptp(squares) > 1e-4
    else:
        np.testing.assert_allclose(squares, entry.squares, rtol=0, atol=1e-12)
    at_points = phi(name, POINTS)[0]
    assert (np.abs(at_points - (POINTS == 0)).max() < 1e-12) == entry.interpolating


@pytest.mark.parametrize("name", KERNELS)
def test_support_and_continuity(name):
    """φ vanishes from its end on; jumps of φ, φ', φ'' at the breaks tell the continuity."""
    entry = KERNELS[name]
    ends = np.array([piece.end for piece in entry.pieces])
    assert phi(name, ends[-1] + 1e-9)[0] == 0.0
    assert np.abs(phi(name, ends[-1] * (1 - 1e-3))[0]) > 0.0
    assert entry.width == {1.0: 2, 1.5: 3, 2.0: 4, 2.5: 5, 3.0: 6}[ends[-1]]
    breaks, eps, h = np.concatenate([[0.0], ends]), 1e-9, 1e-5
    inside, outside = phi(name, breaks - eps), phi(name, breaks + eps)
    assert np.abs(inside[0] - outside[0]).max() < 1e-8
    smooth = np.abs(inside[1] - outside[1]).max() < 1e-7
    assert smooth == (entry.continuity >= 1)
    second = [
        (phi(name, breaks + side * (eps + h))[1] - phi(name, breaks + side * eps)[1]) / (side * h)
        for side in (-1, 1)
    ]
    smoother = np.abs(second[0] - second[1]).max() < 1e-2
    assert (smooth and smoother) == (entry.continuity >= 2)


@pytest.mark.parametrize("name", KERNELS)
def test_slope_is_the_derivative(name):
    """By differences of the fourth order, away from the breaks, where its error is 1e-9."""
    x = np.random.default_rng(1).uniform(-3.1, 3.1, 500)
    x = x[np.abs(2 * x - np.rint(2 * x)) > 1e-2]
    h = 5e-4
    steps = np.array([-2, -1, 1, 2])
    around = phi(name, x[:, None] + h * steps)[0]
    expected = around @ np.array([1, -8, 8, -1]) / (12 * h)
    np.testing.assert_allclose(phi(name, x)[1], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("base", ["i2", "t", "s3", "s4"])
def test_smoothed_kernels_are_means_over_a_cell(base):
    """φ*(x) = ∫ φ from x − ½ to x + ½; φ*' = φ(x + ½) − φ(x − ½)."""
    breaks = [sign * piece.end for piece in KERNELS[base].pieces for sign in (-1, 1)] + [0.0]
    for x in np.linspace(-2.6, 2.6, 27):
        inside = sorted(b for b in breaks if x - 0.5 < b < x + 0.5) or None
        mean = quad(lambda y: float(phi(base, y)[0][0]), x - 0.5, x + 0.5, points=inside)[0]
        value, slope = phi(f"smoothed-{base}", x)
        assert value[0] == pytest.approx(mean, abs=1e-9)
        expected = phi(base, x + 0.5)[0][0] - phi(base, x - 0.5)[0][0]
        assert slope[0] == pytest.approx(expected, abs=1e-12)


REFERENCE = {
    "s3": 2 / 3, "s4": 1 / 2, "s5": 0.767970140121, "s6": 0.625, "t": 0.5,
    "smoothed-s3": 0.618199929359, "smoothed-s4": 0.473174770425,
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCE)
def test_values_at_the_centre(name):
    assert phi(name, 0.0)[0][0] == pytest.approx(REFERENCE[name], abs=1e-12)


def test_smoothed_t_has_nearly_constant_squares():
    squares = (phi("smoothed-t", X[:, None] - POINTS)[0] ** 2).sum(1)
    assert squares.min() == pytest.approx(0.35101, abs=1e-5)
    assert squares.max() == pytest.approx(0.35132, abs=1e-5)
