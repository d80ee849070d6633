"""Speed of the fluid: the transform against planned FFTW and PFFT, a stage against the transforms it
needs, a step against fluidsim, two ranks against one, memory per point.

`python scripts/bench/fluid.py JOB N` is what is started, alone or under mpirun; it prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from hpcsim.bench import Figure
from hpcsim.parallel.launcher import mpirun_environment
from hpcsim.parallel.ranks import Ranks

REPEATS = 9
ROUNDS = 3


def best(works, ranks=None, repeats: int = REPEATS) -> list[float]:
    """Shortest wall time of each work [s], taken in turns so that all see the same machine."""
    times = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            if ranks:
                ranks.barrier()
            before = time.perf_counter()
            work()
            spent = time.perf_counter() - before
            found.append(ranks.vote(spent)[0] if ranks else spent)
    return [min(found) for found in times]


def plain_fftw(n: int):
    """A round trip of one component by planned FFTW alone."""
    from mpi4py_fft import fftw

    field = fftw.aligned((n, n, n), dtype="d")
    modes = fftw.aligned((n, n, n // 2 + 1), dtype="D")
    measure = (fftw.FFTW_MEASURE,)
    forward = fftw.rfftn(field, axes=(0, 1, 2), flags=measure, output_array=modes)
    backward = fftw.irfftn(modes, s=(n, n, n), axes=(0, 1, 2), flags=measure, output_array=field)
    field[:] = 1.0

    def work():
        forward.execute() if hasattr(forward, "execute") else forward(field, modes)
        backward.execute() if hasattr(backward, "execute") else backward(modes, field)

    return work


def transforms(n: int, ranks) -> dict[str, float]:
    """Round trips of one component [s]: ours, planned FFTW (one rank), PFFT."""
    from hpcsim.transform.reference import ReferenceTransform
    from hpcsim.transform.slab import SlabTransform

    ours, theirs = SlabTransform((n, n, n), ranks, (1,)), ReferenceTransform((n, n, n), ranks)
    u = ours.physical(1)
    u_hat = ours.spectral(1)
    pfft, space, modes = theirs._pfft, theirs._space, theirs._modes

    def slab():
        ours.forward(u, u_hat)
        ours.backward(u_hat, u)

    def reference():
        pfft.forward(space, modes, normalize=False)
        pfft.backward(modes, space, normalize=False)

    works = [slab, reference] + ([plain_fftw(n)] if ranks.size == 1 else [])
    return dict(zip(("slab", "pfft", "fftw"), best(works, ranks), strict=False))


def model(n: int, ranks, operators: str, scheme: str):
    """A ready flow."""
    from hpcsim.job import new_job
    from hpcsim.models.fluid.model import Fluid

    changes = {
        "fluid.n": [n] * 3,
        "fluid.operators": operators,
        "time.scheme": scheme,
        "output.fields": [],
        "time.dt": 1e-3,
        "time.end": 1.0,
        "output.every": 1.0,
    }
    flow = Fluid(new_job("taylor-green-3d", changes, ranks.size).case, ranks)
    ranks.root_first(flow.prepare)
    flow.begin()
    return flow


def steps(n: int, ranks) -> dict[str, float]:
    """Wall times of an RK4 step and of one stage of each operator, and of the transforms [s]."""
    found = {}
    flow = model(n, ranks, "spectral", "rk4")
    (found["rk4"],) = best([lambda: flow.advance(0, 1)], ranks, 5)
    stage = plain_fftw(n) if ranks.size == 1 else None
    for operators in ("centred", "spectral"):
        flow = model(n, ranks, operators, "euler").flow
        u_hat, rate = flow.transform.spectral(3), flow.transform.spectral(3)
        works = [lambda u=u_hat, g=rate, flow=flow: flow.rate(u, 0.0, g)]
        times = best(works + ([stage] if stage else []), ranks, 5)
        found[operators] = times[0]
        if stage:
            found[f"{operators} fft"] = times[1] / 2
    return found


def memory(n: int, ranks) -> dict[str, float]:
    """Bytes per grid point that a flow with ARS(2,2,2) holds, by operators."""
    found = {}
    for operators in ("centred", "spectral"):
        resident = resident_bytes()
        flow = model(n, ranks, operators, "ars222")
        flow.advance(0, 1)
        found[operators] = (resident_bytes() - resident) * ranks.size / n**3
        del flow
    return found


def resident_bytes() -> int:
    """Memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


JOBS = {"transforms": transforms, "steps": steps, "memory": memory}


def launched(ranks: int, job: str, n: int) -> dict[str, float]:
    """What a job of this file prints on so many ranks."""
    done = subprocess.run(
        ["mpirun", "-n", str(ranks), sys.executable, __file__, job, str(n)],
        env=mpirun_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


FLUIDSIM = """
import sys, time
from fluidsim.solvers.ns3d.solver import Simul
n = int(sys.argv[1])
params = Simul.create_default_params()
oper = params.oper
oper.nx = oper.ny = oper.nz = n
oper.Lx = oper.Ly = oper.Lz = 6.283185307179586
oper.type_fft = "fft3d.with_pyfftw"
oper.coef_dealiasing = 2 / 3
params.nu_2 = 1 / 1600
params.time_stepping.type_time_scheme = "RK4"
params.time_stepping.USE_CFL = False
params.time_stepping.deltat0 = 1e-3
params.init_fields.type = "noise"
params.output.HAS_TO_SAVE = False
simul = Simul(params)
step = simul.time_stepping.one_time_step_computation
times = []
for _ in range(7):
    before = time.perf_counter()
    step()
    times.append(time.perf_counter() - before)
print("seconds", min(times))
"""


def fluidsim_step(n: int) -> float:
    """Wall time of fluidsim's RK4 step [s]; nan where it is not installed (extra `bench`)."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [os.environ.get("FLUIDSIM_PYTHON", sys.executable), "-c", FLUIDSIM, str(n)],
            env=os.environ | {"FLUIDSIM_PATH": folder, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    line = done.stdout.splitlines()[-1:] if done.returncode == 0 else []
    return float(line[0].split()[1]) if line else float("nan")


def measure() -> list[Figure]:
    """All figures of this file; ratios from the same round, the best round counts."""
    figures = []
    for n in (64, 128):
        rounds = [
            (launched(1, "transforms", n), launched(2, "transforms", n)) for _ in range(ROUNDS)
        ]
        alone = min(one["slab"] / one["fftw"] for one, _ in rounds)
        speedup = max(one["slab"] / two["slab"] for one, two in rounds)
        pfft = max(two["pfft"] / two["slab"] for _, two in rounds)
        figures += [
            Figure(f"transform / planned FFTW, 1 rank, {n}^3", alone, "x", 1.25),
            Figure(f"transform, 2 ranks / 1, {n}^3", speedup, "x", 1.5, most=False),
            Figure(f"PFFT / transform, 2 ranks, {n}^3", pfft, "x", 1.5, most=False),
        ]
    rounds = [
        (launched(1, "steps", 128), launched(2, "steps", 128), fluidsim_step(128))
        for _ in range(ROUNDS)
    ]
    for operators, count in (("centred", 6), ("spectral", 8)):
        ratio = min(one[operators] / (count * one[f"{operators} fft"]) for one, _, _ in rounds)
        figures.append(Figure(f"stage / its {count} FFTs, {operators}, 128^3", ratio, "x", 1.6))
    figures += [
        Figure(
            "RK4 step / fluidsim, 128^3",
            float(np.nanmin([one["rk4"] / peer for one, _, peer in rounds])),
            "x",
            1.0,
        ),
        Figure(
            "RK4 step, 2 ranks / 1, 128^3",
            max(one["rk4"] / two["rk4"] for one, two, _ in rounds),
            "x",
            1.6,
            most=False,
        ),
    ]
    for operators, value in launched(1, "memory", 128).items():
        figures.append(Figure(f"memory per point, ARS(2,2,2), {operators}", value, "bytes", 250))
    return figures


if __name__ == "__main__":
    world = Ranks.world()
    result = JOBS[sys.argv[1]](int(sys.argv[2]), world)
    if world.is_root:
        print(json.dumps(result))
