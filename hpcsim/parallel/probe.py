"""What `hpcsim doctor` starts on two ranks: one file written in parallel.

`mpirun -n 2 python -m hpcsim.parallel.probe FILE`
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hpcsim.output.hdf5 import add_dataset, require_parallel, sealing, write_share
from hpcsim.parallel.ending import ending_all
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share
from hpcsim.terminal import Terminal

ROWS = 5


def probe(path: Path) -> None:
    """Every rank writes its number into its rows of one dataset."""
    ranks = Ranks.world()
    with ending_all(ranks, Terminal(ranks)):
        require_parallel(ranks)
        start, count = ranks.block(ROWS)
        share = Share(np.full(count, float(ranks.rank)), 0, start, ROWS)
        with sealing(path, ranks) as file:
            dataset = add_dataset(file, "rank", share.shape, share.local.dtype, {})
            write_share(dataset, share, ranks)


if __name__ == "__main__":
    probe(Path(sys.argv[1]))
