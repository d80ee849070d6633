"""The processes of a run and the few exchanges between them that the code needs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from hpcsim.errors import HpcsimError

T = TypeVar("T")


def block(total: int, rank: int, size: int) -> tuple[int, int]:
    """Start and length of this rank's share of `total` rows; lengths differ by one at most."""
    start = total * rank // size
    return start, total * (rank + 1) // size - start


class Ranks:
    """A communicator with the operations hpcsim uses; `Ranks.world()` is all processes."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.is_root = self.rank == 0

    @classmethod
    def world(cls) -> Ranks:
        """All processes of the job; starts MPI."""
        # Open MPI's own file layer has hung under HDF5 1.10; ROMIO has not. A user's choice wins.
        os.environ.setdefault("OMPI_MCA_io", "romio321")
        from mpi4py import MPI

        return cls(MPI.COMM_WORLD)

    @classmethod
    def alone(cls) -> Ranks:
        """This process by itself."""
        from mpi4py import MPI

        return cls(MPI.COMM_SELF)

    def on_this_machine(self) -> int:
        """Number of ranks that share this machine's memory; called by all."""
        if self.size == 1:
            return 1
        from mpi4py import MPI

        here = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        count: int = here.Get_size()
        here.Free()
        return count

    def first(self, text: str) -> str:
        """The text of the lowest rank whose text is not empty."""
        texts = self.comm.allgather(text) if self.size > 1 else [text]
        return next((text for text in texts if text), "")

    def block(self, total: int) -> tuple[int, int]:
        """Start and length of this rank's share of `total` rows."""
        return block(total, self.rank, self.size)

    def share(self, value: T) -> T:
        """Rank 0's value, on every rank."""
        return self.comm.bcast(value) if self.size > 1 else value

    def on_root(self, work: Callable[[], T]) -> T:
        """Do `work` on rank 0 and give its result, or its foreseen error, to every rank."""
        result: Any = None
        error: HpcsimError | None = None
        if self.is_root:
            try:
                result = work()
            except HpcsimError as problem:
                error = problem
        result, error = self.share((result, error))
        if error is not None:
            raise error
        return result

    def agree(self, error: HpcsimError | None) -> None:
        """Raise on every rank the error of the lowest rank that has one."""
        errors = self.comm.allgather(error) if self.size > 1 else [error]
        for problem in errors:
            if problem is not None:
                raise problem

    def vote(self, *values: float) -> list[float]:
        """The largest of each value over the ranks: the same answer, so the same decision."""
        mine = np.array(values, dtype=np.float64)
        if self.size > 1:
            from mpi4py import MPI

            self.comm.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
        return [float(value) for value in mine]

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Element-wise maximum over the ranks; exact, so independent of their number."""
        if self.size > 1:
            from mpi4py import MPI

            values = np.ascontiguousarray(values, dtype=np.float64)
            self.comm.Allreduce(MPI.IN_PLACE, values, op=MPI.MAX)
        return values

    def total(self, values: np.ndarray) -> np.ndarray:
        """Element-wise sum over the ranks, always added in the order of the ranks."""
        if self.size == 1:
            return values
        mine = np.ascontiguousarray(values, dtype=np.float64)
        everyone = np.empty((self.size, *mine.shape))
        self.comm.Allgather(mine, everyone)
        return everyone.sum(axis=0)

    def root_first(self, work: Callable[[], None]) -> None:
        """Do `work` on rank 0, then on the others: they find what it left in the cache."""
        if self.is_root:
            work()
        self.barrier()
        if not self.is_root:
            work()

    def barrier(self) -> None:
        """Wait for all ranks."""
        if self.size > 1:
            self.comm.Barrier()
