from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hpcsim.time.tableaux import ADDITIVE, EXPLICIT, as_pair, rational
from tests.time.trees import residual, trees

# Residuals of the order conditions in exact arithmetic: quotients of integers with 12 to 14 digits
# approximate the coefficients of ark3-5 to about 1e-26; that of ars222 is the nearest double.
TOLERANCE = dict.fromkeys(ADDITIVE, 0) | {
    "ars222": 1e-16,
    "ark3": 1e-24,
    "ark4": 1e-24,
    "ark5": 1e-24,
}
ORDERS = {
    "euler": 1,
    "trapezoid": 2,
    "koto": 2,
    "ars222": 2,
    "ars443": 3,
    "ark3": 3,
    "ark4": 4,
    "ark5": 5,
}
EMBEDDED_ORDERS = {"ark3": 2, "ark4": 3, "ark5": 4}
# The nodes as published, apart from the rows whose sums they are.
NODES = {
    "euler": (0, 1),
    "trapezoid": (0, 1, 1),
    "koto": (0, 1, "1/2", 1),
    "ars222": (0, Fraction(1 - 0.5**0.5), 1),
    "ars443": (0, "1/2", "2/3", "1/2", 1),
    "ark3": (0, "1767732205903/2027836641118", "3/5", 1),
    "ark4": (0, "1/2", "83/250", "31/50", "17/20", 1),
    "ark5": (
        0,
        "41/100",
        "2935347310677/11292855782101",
        "1426016391358/7196633302097",
        "23/25",
        "6/25",
        "3/5",
        1,
    ),
}
# One step h = 0.1 of y' = -2y (implicit) + (1 - t) y (explicit) from y(0) = 1.
ONE_STEP = {
    "euler": 0.916666666666667,
    "trapezoid": 0.900000000000000,
    "koto": 0.902864583333333,
    "ars222": 0.900175531962081,
    "ars443": 0.900318119920087,
    "ark3": 0.900298247414796,
    "ark4": 0.900324358168001,
    "ark5": 0.900324516486723,
}

every_pair = pytest.mark.parametrize("name", ADDITIVE)


def halves(pair):
    """Exact coefficients ([implicit, explicit], [implicit, explicit])."""
    rows = (pair.implicit_rows, pair.explicit_rows)
    weights = (pair.implicit_weights, pair.explicit_weights)
    a = [rational(((), *half), pair.stages) for half in rows]
    return a, list(rational(weights, pair.stages))


def one_step(pair, h=0.1):
    """Stages and end of the step of the linear problem above."""
    explicit = 1 - h * pair.c
    matrix = np.eye(pair.stages) - h * (-2 * pair.a_implicit + pair.a_explicit * explicit)
    stages = np.linalg.solve(matrix, np.ones(pair.stages))
    return stages, 1 + h * (-2 * pair.b_implicit + pair.b_explicit * explicit) @ stages


def amplification(pair, z):
    """R(z) of an implicit half with its weights as last row: the last stage for y' = z y."""
    matrix = np.eye(pair.stages) - z[:, None, None] * pair.a_implicit
    return np.linalg.solve(matrix, np.ones((len(z), pair.stages, 1)))[:, -1, 0]


def test_number_of_trees():
    assert [len(trees(order)) for order in (1, 2, 3, 4, 5)] == [1, 1, 2, 4, 9]
    assert [len(trees(order, colours=2)) for order in (1, 2, 3, 4, 5)] == [2, 4, 14, 52, 214]


@pytest.mark.parametrize("name", EXPLICIT)
def test_order_conditions_hold_to_the_order_and_not_beyond(name):
    tableau = EXPLICIT[name]
    for order in range(1, tableau.order + 1):
        assert residual(order, [tableau.a], [tableau.b]) < 1e-15
    assert residual(tableau.order + 1, [tableau.a], [tableau.b]) > 1e-3


@pytest.mark.parametrize("name", EXPLICIT)
def test_nodes_are_row_sums_and_stages_are_explicit(name):
    tableau = EXPLICIT[name]
    np.testing.assert_allclose(tableau.a.sum(axis=1), tableau.c, atol=1e-16)
    assert not np.triu(tableau.a).any()
    assert sum(map(Fraction, tableau.weights)) == 1


@every_pair
def test_bicoloured_order_conditions_hold_to_the_order_and_not_beyond(name):
    pair = ADDITIVE[name]
    assert pair.order == ORDERS[name]
    for order in range(1, pair.order + 1):
        assert residual(order, *halves(pair)) <= TOLERANCE[name]
    assert residual(pair.order + 1, *halves(pair)) > 1e-3


def test_bicoloured_conditions_see_what_the_halves_alone_do_not():
    implicit, explicit = ADDITIVE["ars443"], ADDITIVE["ark3"].closed()
    mixed = replace(
        explicit,
        implicit_rows=implicit.implicit_rows,
        implicit_weights=implicit.implicit_weights,
    )
    a, b = halves(mixed)
    for half in range(2):
        assert residual(3, a[half : half + 1], b[half : half + 1]) < 1e-24
    assert residual(3, a, b) > 1e-2


@every_pair
def test_embedded_weights_are_one_order_lower(name):
    pair = ADDITIVE[name]
    assert pair.embedded_order == EMBEDDED_ORDERS.get(name)
    if name not in EMBEDDED_ORDERS:
        assert pair.embedded is None
        return
    a, _ = halves(pair)
    embedded = rational((pair.embedded_weights,), pair.stages)[0]
    for order in range(1, pair.embedded_order + 1):
        assert residual(order, a, [embedded, embedded]) <= TOLERANCE[name]
    assert residual(pair.embedded_order + 1, a, [embedded, embedded]) > 1e-3
    np.testing.assert_array_equal(pair.embedded, embedded.astype(float))


@every_pair
def test_both_halves_have_the_published_nodes(name):
    pair = ADDITIVE[name]
    nodes = rational((NODES[name],), pair.stages)[0]
    for a in halves(pair)[0]:
        assert abs(a.sum(axis=1) - nodes).max() <= TOLERANCE[name]
    np.testing.assert_array_equal(pair.c, nodes.astype(float))


@every_pair
def test_halves_are_lower_triangular_and_the_arrays_are_their_fractions(name):
    pair = ADDITIVE[name]
    (a_implicit, a_explicit), (b_implicit, b_explicit) = halves(pair)
    np.testing.assert_array_equal(pair.a_implicit, a_implicit.astype(float))
    np.testing.assert_array_equal(pair.a_explicit, a_explicit.astype(float))
    np.testing.assert_array_equal(pair.b_implicit, b_implicit.astype(float))
    np.testing.assert_array_equal(pair.b_explicit, b_explicit.astype(float))
    assert not np.triu(pair.a_explicit).any()
    assert not np.triu(pair.a_implicit, 1).any()
    assert pair.a_implicit.dtype == pair.b_implicit.dtype == pair.c.dtype == np.float64


@every_pair
def test_implicit_half_is_stable_in_the_left_half_plane(name):
    pair = ADDITIVE[name]
    # The poles 1/a_ii are in the right half plane, so |R| is largest on the imaginary axis.
    assert (np.diag(pair.a_implicit) >= 0).all()
    np.testing.assert_array_equal(pair.a_implicit[-1], pair.b_implicit)
    axis = 1j * np.concatenate(([0], np.logspace(-4, 8, 4001)))
    size = abs(amplification(pair, axis))
    assert size.max() <= 1 + 1e-14  # round-off of a solve with at most 8 stages
    if name == "trapezoid":
        np.testing.assert_allclose(size, 1, rtol=1e-14)
    else:  # R = O(1/z): no part of a stiff mode is left
        assert size[-1] < 1e-6


@every_pair
def test_one_step_of_a_problem_with_both_terms(name):
    _, end = one_step(ADDITIVE[name])
    assert end == pytest.approx(ONE_STEP[name], abs=1e-14)


def test_only_pairs_that_do_not_end_on_a_stage_are_changed_by_closing():
    changed = [name for name, pair in ADDITIVE.items() if pair.closed() is not pair]
    assert changed == ["ark3", "ark4", "ark5"]


@every_pair
def test_closed_pair_ends_on_its_last_stage_with_the_same_order_and_step(name):
    pair = ADDITIVE[name].closed()
    assert pair.is_closed
    assert pair.closed() is pair
    assert pair.c[-1] == 1
    np.testing.assert_array_equal(pair.a_implicit[-1], pair.b_implicit)
    np.testing.assert_array_equal(pair.a_explicit[-1], pair.b_explicit)
    for order in range(1, pair.order + 1):
        assert residual(order, *halves(pair)) <= TOLERANCE[name]
    stages, end = one_step(pair)
    assert stages[-1] == pytest.approx(ONE_STEP[name], abs=1e-14)
    assert end == pytest.approx(ONE_STEP[name], abs=1e-14)


@pytest.mark.parametrize("name", EMBEDDED_ORDERS)
def test_appended_stage_solves_nothing_and_has_no_weight(name):
    pair, closed = ADDITIVE[name], ADDITIVE[name].closed()
    assert closed.stages == pair.stages + 1
    assert closed.a_implicit[-1, -1] == 0
    assert closed.b_implicit[-1] == closed.b_explicit[-1] == 0
    np.testing.assert_array_equal(closed.embedded, [*pair.embedded, 0])
    np.testing.assert_array_equal(closed.a_implicit[:-1, :-1], pair.a_implicit)
    np.testing.assert_array_equal(closed.a_explicit[:-1, :-1], pair.a_explicit)


@every_pair
def test_explicit_half_serves_both_terms_with_the_order_of_the_pair(name):
    pair, half = ADDITIVE[name], ADDITIVE[name].explicit_half()
    np.testing.assert_array_equal(half.a_implicit, pair.a_explicit)
    np.testing.assert_array_equal(half.b_implicit, pair.b_explicit)
    np.testing.assert_array_equal(half.a_explicit, pair.a_explicit)
    np.testing.assert_array_equal(half.b_explicit, pair.b_explicit)
    a, b = halves(half)
    for order in range(1, half.order + 1):
        assert residual(order, a[:1], b[:1]) <= TOLERANCE[name]


@pytest.mark.parametrize("name", EXPLICIT)
def test_explicit_tableau_as_a_pair(name):
    tableau, pair = EXPLICIT[name], as_pair(EXPLICIT[name])
    assert pair.explicit_half() == pair
    np.testing.assert_array_equal(pair.a_implicit, tableau.a)
    np.testing.assert_array_equal(pair.b_explicit, tableau.b)
    np.testing.assert_array_equal(pair.c, tableau.c)
    closed = pair.closed()
    assert closed.stages == pair.stages + 1
    for order in range(1, pair.order + 1):
        assert residual(order, *halves(closed)) == 0
    assert residual(pair.order + 1, *halves(closed)) > 1e-3
