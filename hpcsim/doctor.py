"""`hpcsim doctor`: what is installed, what works when tried, and how to mend the rest."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from hpcsim.errors import FAILED, FINISHED
from hpcsim.parallel.launcher import launched_rank, mpirun_environment

TRIAL_SECONDS = 60


class Finding(Exception):
    """Something that does not work; the text says how to mend it."""


def examine() -> int:
    """Print a line per ability; exit code 0 if all is well."""
    checks: dict[str, Callable[[], str]] = {
        "python": lambda: f"{sys.version.split()[0]} in {sys.prefix}",
        "packages": packages,
        "MPI": mpi_library,
        "HDF5": hdf5_library,
        "FFT": fft_library,
        "numba cache": numba_cache,
        "pictures": pictures,
        "2 ranks, 1 file": parallel_write,
    }
    wrong = 0
    for name, check in checks.items():
        try:
            mark, text = "ok", check()
        except Finding as problem:
            mark, text = "!!", str(problem)
            wrong += 1
        except Exception as problem:
            mark, text = "!!", f"{type(problem).__name__}: {problem}"
            wrong += 1
        print(f"{mark}  {name:<16} {text}", flush=True)
    print("all is well" if not wrong else f"{wrong} to mend, marked !!")
    return FAILED if wrong else FINISHED


def packages() -> str:
    """Versions of what a run depends on."""
    names = ("hpcsim", "numpy", "numba", "mpi4py", "mpi4py-fft", "h5py", "pydantic")
    return ", ".join(f"{name} {version(name)}" for name in names)


def mpi_library() -> str:
    """The MPI library and its launcher."""
    from mpi4py import MPI

    library = MPI.Get_library_version().split(",")[0].strip()
    launcher = shutil.which("mpirun")
    if not launcher:
        raise Finding(f"{library}, but no mpirun on the PATH: install it or load its module")
    return f"{library}, launcher {launcher}"


def hdf5_library() -> str:
    """The HDF5 below h5py, and whether it writes in parallel."""
    import h5py

    if not h5py.get_config().mpi:
        raise Finding(
            f"HDF5 {h5py.version.hdf5_version} without MPI: one rank only; "
            "./scripts/setup builds h5py on parallel HDF5 (HDF5_DIR and MPICC choose which)"
        )
    return f"{h5py.version.hdf5_version}, parallel"


def fft_library() -> str:
    """A planned transform of mpi4py-fft, tried."""
    import numpy as np
    from mpi4py_fft import fftw

    field = fftw.aligned(8, dtype=np.float64)
    plan = fftw.rfftn(field, axes=(0,))
    field[:] = np.arange(8)
    if not np.allclose(plan(field), np.fft.rfft(np.arange(8.0))):
        raise Finding("mpi4py-fft gives wrong transforms: install it again against this FFTW")
    return f"FFTW through mpi4py-fft {version('mpi4py-fft')}"


def numba_cache() -> str:
    """Where compiled code is kept."""
    from hpcsim.compiled import CACHE

    if str(CACHE).startswith(tempfile.gettempdir()):
        raise Finding(
            f"{CACHE}: no cache folder in your home can be written, so each start compiles anew; "
            "set XDG_CACHE_HOME to a folder that you may write"
        )
    return str(CACHE)


def pictures() -> str:
    """The plotting library."""
    try:
        return f"matplotlib {version('matplotlib')}"
    except ImportError:
        raise Finding("no matplotlib: pip install 'hpcsim[look]'") from None


def parallel_write() -> str:
    """Start two ranks that write one file, and read it."""
    if launched_rank() is not None:
        return "not tried below mpirun: call hpcsim doctor by itself"
    if not shutil.which("mpirun"):
        raise Finding("not tried: no mpirun on the PATH")
    import h5py

    if not h5py.get_config().mpi:
        raise Finding("not tried: h5py is serial, see HDF5")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.h5"
        command = ["mpirun", "-n", "2", sys.executable, "-m", "hpcsim.parallel.probe", str(path)]
        try:
            done = subprocess.run(
                command,
                env=mpirun_environment(),
                timeout=TRIAL_SECONDS,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            raise Finding(
                f"hung for {TRIAL_SECONDS} s; with Open MPI try: export OMPI_MCA_io=romio321"
            ) from None
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.strip("- ")]
            raise Finding(f"exit code {done.returncode}: {said[0] if said else 'nothing said'}")
        with h5py.File(path) as file:
            found = file["rank"][:].tolist()
    if found != [0.0, 0.0, 1.0, 1.0, 1.0]:
        raise Finding(f"the file holds {found}: mpirun and mpi4py belong to different MPIs")
    return "started, written and read back"
