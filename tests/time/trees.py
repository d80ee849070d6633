"""Rooted trees with coloured vertices, and the order conditions they stand for."""

from fractions import Fraction
from functools import cache

import numpy as np


@cache
def trees(order, colours=1):
    """All trees with so many vertices, each (colour of the root, sorted subtrees)."""
    if order == 1:
        return sorted((colour, ()) for colour in range(colours))
    return sorted({grown for tree in trees(order - 1, colours) for grown in grafts(tree, colours)})


def grafts(tree, colours):
    """The tree with one more leaf, of each colour on each vertex."""
    root, subtrees = tree
    for colour in range(colours):
        yield root, tuple(sorted((*subtrees, (colour, ()))))
    for i, subtree in enumerate(subtrees):
        for grown in grafts(subtree, colours):
            yield root, tuple(sorted((*subtrees[:i], grown, *subtrees[i + 1 :])))


def size(tree):
    return 1 + sum(map(size, tree[1]))


def density(tree):
    result = size(tree)
    for subtree in tree[1]:
        result *= density(subtree)
    return result


def residual(order, a, b):
    """Largest |Σ_i b_i Φ_i(τ) - 1/γ(τ)| of the trees of this order; a[colour], b[colour]."""

    @cache
    def stages(tree):
        result = np.full(len(a[0]), Fraction(1))
        for subtree in tree[1]:
            result = result * (a[subtree[0]] @ stages(subtree))
        return result

    return max(
        abs(b[tree[0]] @ stages(tree) - Fraction(1, density(tree))) for tree in trees(order, len(a))
    )
