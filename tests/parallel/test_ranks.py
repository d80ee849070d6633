import numpy as np
import pytest

from hpcsim.errors import HpcsimError, InputError
from hpcsim.parallel.ranks import block


@pytest.mark.parametrize("total", [0, 1, 2, 7, 64, 1000])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 11])
def test_blocks_cover_everything_once_and_evenly(total, size):
    parts = [block(total, rank, size) for rank in range(size)]
    rows = [row for start, count in parts for row in range(start, start + count)]
    assert rows == list(range(total))
    counts = [count for _, count in parts]
    assert max(counts) - min(counts) <= 1


@pytest.mark.mpi
def test_root_shares_results_and_errors(ranks):
    assert ranks.on_root(lambda: ranks.rank + 5) == 5

    def fail():
        raise InputError("first line", "second line")

    with pytest.raises(InputError) as caught:
        ranks.on_root(fail)
    assert caught.value.lines == ("first line", "second line")
    assert caught.value.exit_code == 2


@pytest.mark.mpi
def test_agreement_raises_the_lowest_ranks_error_everywhere(ranks):
    ranks.agree(None)
    mine = HpcsimError(f"rank {ranks.rank}") if ranks.rank >= 1 else None
    with pytest.raises(HpcsimError, match="rank 1"):
        ranks.agree(mine)


@pytest.mark.mpi
def test_votes_are_maxima_and_equal(ranks):
    assert ranks.vote(ranks.rank, -ranks.rank, 0.5) == [ranks.size - 1, 0.0, 0.5]
    found = ranks.largest(np.array([ranks.rank, -np.inf, 1.0]))
    assert found.tolist() == [ranks.size - 1, -np.inf, 1.0]
    assert ranks.first("" if ranks.rank == 0 else f"from {ranks.rank}") == "from 1"


@pytest.mark.mpi
def test_root_works_first(ranks, shared_tmp):
    mark = shared_tmp / "root was here"

    def work():
        if ranks.is_root:
            mark.touch()
        assert mark.exists()

    ranks.root_first(work)


@pytest.mark.mpi
def test_ranks_of_this_machine_are_counted(ranks):
    assert ranks.on_this_machine() == ranks.size
