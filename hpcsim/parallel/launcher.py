"""What a launcher tells a process about itself, before MPI is started."""

from __future__ import annotations

import os

#: Variables by which launchers tell a process its rank.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")


def launched_rank() -> int | None:
    """This process's rank as its launcher says, without starting MPI; None when started alone."""
    for name in RANK_VARIABLES:
        if name in os.environ:
            return int(os.environ[name])
    if os.environ.get("SLURM_STEP_ID", "").isdigit() and "SLURM_PROCID" in os.environ:
        return int(os.environ["SLURM_PROCID"])
    return None
