"""The thin layer that knows of MPI: ranks, votes, signals and the end of all ranks."""
