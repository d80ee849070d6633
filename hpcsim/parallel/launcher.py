"""Launchers: what they tell a process about itself, and how mpirun is started from here."""

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


def mpirun_environment() -> dict[str, str]:
    """What mpirun needs: one thread per rank, more ranks than cores allowed, root allowed."""
    extra = {"OMP_NUM_THREADS": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    if os.getuid() == 0:
        extra |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return os.environ | extra
