"""hpcsim: MPI-parallel simulations in computational mechanics.

>>> import hpcsim
>>> run = hpcsim.run("gyroscope", {"time.end": 2.0}, out="runs/g")  # doctest: +SKIP
>>> run.summary["figures"]["drift_energy"], run.series["t"][:]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcsim.api import open_run, run

if TYPE_CHECKING:
    from hpcsim.output.run import Run

__version__ = "0.1.0"
__all__ = ["Run", "open_run", "run"]
