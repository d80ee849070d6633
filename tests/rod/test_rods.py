"""The rods of a run: noise, and what belongs to segments seen at nodes."""

import numpy as np
import pytest

from hpcsim.rod.rods import MECHANICS, Rod, Rods, means


class Straight:
    """Nothing at rest."""

    steady = True

    def fill(self, t, out):
        out[:] = 0.0


def one_rod(bending, nodes=13):
    h = np.full(nodes - 1, 0.1)
    stiffness = np.broadcast_to(np.eye(6), (nodes - 1, 6, 6)).copy()
    return Rods([Rod(0.1 * np.arange(nodes), h, stiffness, Straight(), MECHANICS[bending])])


@pytest.mark.parametrize(("bending", "count"), [("couple", 12), ("force", 11)])
@pytest.mark.parametrize("mode", [0, 2, 9])
def test_noise_is_the_share_of_the_upper_third_of_modes(bending, count, mode):
    """One cosine mode of 12 or 11: all or nothing of it is noise; two: by their squares."""
    rods = one_rod(bending)
    wave = np.cos(np.pi * mode * (np.arange(count) + 0.5) / count)
    rods.strains[:count, 5] = wave / np.linalg.norm(wave)
    assert rods.noise_ratio(0) == pytest.approx(1.0 if mode == 9 else 0.0, abs=1e-12)
    high = np.cos(np.pi * (count - 1) * (np.arange(count) + 0.5) / count)
    rods.strains[:count, 3] = 0.5 * high / np.linalg.norm(high)
    expected = 1.0 if mode == 9 else 0.25 / 1.25
    assert rods.noise_ratio(0) == pytest.approx(expected, abs=1e-12)


def test_means_at_nodes():
    values = np.array([1.0, 3.0, 7.0])
    np.testing.assert_array_equal(means(values, closed=False), [1, 2, 5, 7])
    np.testing.assert_array_equal(means(values, closed=True), [4, 2, 5])
