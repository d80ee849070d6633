import numpy as np
import pytest

from hpcsim.compiled import inlined
from hpcsim.ensemble import engine
from hpcsim.ensemble.engine import LANES
from hpcsim.time.tableaux import EXPLICIT


@inlined
def swing(t, y, p, dy):
    """A driven oscillator: x'' = −p² x + sin t."""
    for i in range(LANES):
        dy[0, i] = y[1, i]
        dy[1, i] = np.sin(t) - p[0, i] * p[0, i] * y[0, i]


advance = engine.make_advance(swing)


def slow_step(tableau, t, y, p, dt):
    """One step, written as the textbook has it: y (member, 2)."""
    slopes = []
    for i in range(len(tableau.b)):
        inner = y + dt * sum((tableau.a[i, j] * slopes[j] for j in range(i)), np.zeros_like(y))
        time = t + tableau.c[i] * dt
        slopes.append(np.stack([inner[:, 1], np.sin(time) - p**2 * inner[:, 0]], axis=1))
    return y + dt * sum(b * slope for b, slope in zip(tableau.b, slopes, strict=True))


def fast(tableau, y, p, dt, steps, first=0):
    state = engine.pack(y)
    arguments = (tableau.a, tableau.b, tableau.c)
    advance(state, engine.pack(p[:, None]), *arguments, first, dt, steps)
    rows = np.empty_like(y)
    engine.unpack(state, rows)
    return rows


@pytest.mark.parametrize("name", EXPLICIT)
def test_engine_does_what_the_textbook_says(name):
    rng = np.random.default_rng(1)
    y, p = rng.normal(size=(70, 2)), rng.uniform(0.5, 2, 70)
    expected = y
    for step in range(5):
        expected = slow_step(EXPLICIT[name], step * 0.1, expected, p, 0.1)
    np.testing.assert_allclose(fast(EXPLICIT[name], y, p, 0.1, 5), expected, rtol=1e-13, atol=1e-14)


def exact(t, y0, p):
    """Solution of the driven oscillator for p ≠ 1."""
    force = 1 / (p**2 - 1)
    a, b = y0[:, 0], (y0[:, 1] - force) / p
    position = a * np.cos(p * t) + b * np.sin(p * t) + force * np.sin(t)
    return position


@pytest.mark.parametrize("name", EXPLICIT)
def test_order_of_convergence(name):
    """Errors of two step sizes differ by 2^order, within a tenth of an order."""
    y, p = np.tile([1.0, 0.3], (3, 1)), np.array([0.5, 1.7, 2.2])
    errors = []
    for steps in (200, 400):
        found = fast(EXPLICIT[name], y, p, 2.0 / steps, steps)
        errors.append(np.abs(found[:, 0] - exact(2.0, y, p)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(EXPLICIT[name].order, abs=0.1)


def test_a_member_has_the_same_bits_in_every_lane_and_company():
    rng = np.random.default_rng(2)
    y, p = rng.normal(size=(200, 2)), rng.uniform(0.5, 2, 200)
    together = fast(EXPLICIT["rk4"], y, p, 0.05, 100)
    for start, count in ((0, 1), (63, 2), (64, 64), (17, 100), (199, 1)):
        alone = fast(EXPLICIT["rk4"], y[start : start + count], p[start : start + count], 0.05, 100)
        np.testing.assert_array_equal(alone, together[start : start + count])


def test_bits_do_not_depend_on_how_a_run_is_cut():
    rng = np.random.default_rng(3)
    y, p = rng.normal(size=(10, 2)), rng.uniform(0.5, 2, 10)
    whole = fast(EXPLICIT["rk4"], y, p, 0.05, 100)
    half = fast(EXPLICIT["rk4"], y, p, 0.05, 37)
    np.testing.assert_array_equal(fast(EXPLICIT["rk4"], half, p, 0.05, 63, first=37), whole)


@pytest.mark.parametrize("members", [1, 63, 64, 65, 200])
def test_pack_and_unpack(members):
    rows = np.arange(members * 3.0).reshape(members, 3)
    blocks = engine.pack(rows)
    assert blocks.shape == (-(-members // 64), 3, 64)
    back = np.empty_like(rows)
    engine.unpack(blocks, back)
    np.testing.assert_array_equal(back, rows)
    np.testing.assert_array_equal(blocks[-1, :, -1], rows[-1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_first_bad_member_is_found(bad):
    rows = np.ones((150, 4))
    assert engine.first_bad(engine.pack(rows)) == -1
    rows[99, 2] = rows[130, 0] = bad
    assert engine.first_bad(engine.pack(rows)) == 99
