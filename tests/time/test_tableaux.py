from fractions import Fraction

import numpy as np
import pytest

from hpcsim.time.tableaux import EXPLICIT


def trees(order):
    """All rooted trees with so many vertices, each a sorted tuple of its subtrees."""
    if order == 1:
        return [()]
    found = set()

    def grow(left, largest, subtrees):
        if left == 0:
            found.add(tuple(sorted(subtrees)))
        for size in range(1, min(left, largest) + 1):
            for tree in trees(size):
                grow(left - size, size, [*subtrees, tree])

    grow(order - 1, order - 1, [])
    return sorted(found)


def size(tree):
    return 1 + sum(map(size, tree))


def density(tree):
    product = size(tree)
    for subtree in tree:
        product *= density(subtree)
    return product


def stage_weights(tree, a):
    result = np.ones(len(a))
    for subtree in tree:
        result = result * (a @ stage_weights(subtree, a))
    return result


def test_number_of_trees():
    assert [len(trees(order)) for order in (1, 2, 3, 4, 5)] == [1, 1, 2, 4, 9]


@pytest.mark.parametrize("name", EXPLICIT)
def test_order_conditions_hold_to_the_order_and_not_beyond(name):
    tableau = EXPLICIT[name]
    for order in range(1, tableau.order + 1):
        for tree in trees(order):
            weight = tableau.b @ stage_weights(tree, tableau.a)
            assert weight == pytest.approx(1 / density(tree), abs=1e-15), tree
    beyond = [
        abs(tableau.b @ stage_weights(tree, tableau.a) - 1 / density(tree))
        for tree in trees(tableau.order + 1)
    ]
    assert max(beyond) > 1e-3


@pytest.mark.parametrize("name", EXPLICIT)
def test_nodes_are_row_sums_and_stages_are_explicit(name):
    tableau = EXPLICIT[name]
    np.testing.assert_allclose(tableau.a.sum(axis=1), tableau.c, atol=1e-16)
    assert not np.triu(tableau.a).any()
    assert sum(map(Fraction, tableau.weights)) == 1
