import numpy as np
import pytest

from hpcsim.parallel.halo import Halo
from hpcsim.parallel.ranks import Ranks, block


def check(n, width, ranks):
    """The halo holds the planes of the periodic field; adding is the adjoint of filling."""
    start, count = block(n, ranks.rank, ranks.size)
    whole = np.random.default_rng(5).normal(size=(2, n, 3, 4))
    halo = Halo(n, width, ranks)
    padded = np.full((2, count + 2 * width, 3, 4), np.nan)
    padded[:, width : width + count] = whole[:, start : start + count]
    halo.fill(padded)
    if count:
        planes = np.arange(start - width, start + count + width) % n
        np.testing.assert_array_equal(padded, whole[:, planes])
        # <fill a, b> = <a, add b>, over all ranks
    b = np.random.default_rng([6, ranks.rank]).normal(size=padded.shape)
    b = b if count else np.zeros_like(b)
    left = float((np.nan_to_num(padded) * b).sum())
    added = b.copy()
    halo.add(added)
    inside = added[:, width : width + count]
    right = float((whole[:, start : start + count] * inside).sum())
    left, right = ranks.total(np.array([left, right]))
    assert left == pytest.approx(right, abs=1e-11)  # sums of some 500 numbers of size 1
    assert abs(left) > 1e-3


@pytest.mark.parametrize(("n", "width"), [(8, 1), (5, 2), (3, 3), (2, 5)])
def test_one_rank(n, width):
    check(n, width, Ranks.alone())


@pytest.mark.mpi
@pytest.mark.parametrize(("n", "width"), [(16, 2), (9, 1), (5, 4), (3, 2), (2, 3), (7, 9)])
def test_several_ranks_also_with_slabs_thinner_than_the_halo(n, width, ranks):
    check(n, width, ranks)
