"""Starting hpcsim as a user does, for tests: processes, ranks, and what they leave behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

from hpcsim.parallel.launcher import mpirun_environment

HPCSIM = [sys.executable, "-m", "hpcsim"]
LIMIT_SECONDS = 120


def command(ranks, *args, program=HPCSIM):
    """The command line of hpcsim on so many ranks."""
    launcher = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    return [*launcher, *program, *map(str, args)]


def hpcsim(*args, ranks=1, cwd=None, program=HPCSIM, timeout=LIMIT_SECONDS):
    """Run a command to its end; the finished process with its output."""
    return subprocess.run(
        command(ranks, *args, program=program),
        cwd=cwd,
        env=mpirun_environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def start(*args, ranks=1, cwd=None, program=HPCSIM):
    """Start a command and go on."""
    return subprocess.Popen(
        command(ranks, *args, program=program),
        cwd=cwd,
        env=mpirun_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def messages(process):
    """What hpcsim itself wrote to stderr, without the launcher's banner."""
    return [line for line in process.stderr.splitlines() if line.startswith("hpcsim:")]


def contents(path):
    """All datasets of an HDF5 file as bytes with their shapes, and their attributes."""
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
            found[name] = (item.shape, item.dtype.str, item[()].tobytes(), attributes)

    with h5py.File(path, "r") as file:
        file.visititems(take)
    return found


def end(process):
    """Kill a command and its ranks, if they still live."""
    if process.poll() is None:
        for pid in [*ranks_of(process), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.communicate()


def ranks_of(process):
    """Process ids of the ranks below an mpirun, or of the process itself."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children] or [process.pid]
