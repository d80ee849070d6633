"""Speed of the fluid: the transform against FFTW and PFFT, a stage against the transforms it
needs, a step against fluidsim, two ranks against one, memory per point.

`python scripts/bench/fluid.py JOB N` is what is started, alone or under mpirun; it prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

from _flow import TRANSFORMS, ready_flow
from mpi4py_fft import PFFT, fftw, newDistArray

from hpcsim.bench import Figure, best, launched
from hpcsim.parallel.ranks import Ranks
from hpcsim.transform.slab import SlabTransform

ROUNDS = 5


def plain_fftw(n, components=1):
    """Round trips of some components by planned FFTW alone."""
    fields = fftw.aligned((components, n, n, n), dtype="d")
    modes = fftw.aligned((components, n, n, n // 2 + 1), dtype="D")
    axes, flags = (0, 1, 2), (fftw.FFTW_MEASURE,)
    forward = fftw.rfftn(fields[0], axes=axes, flags=flags, output_array=modes[0])
    backward = fftw.irfftn(modes[0], s=(n, n, n), axes=axes, flags=flags, output_array=fields[0])
    fields[:] = 1e-3

    def work():
        for field, spectrum in zip(fields, modes, strict=True):
            forward(field, spectrum)
        for field, spectrum in zip(fields, modes, strict=True):
            backward(spectrum, field)

    return work


def plain_pfft(n, ranks, collapse):
    """Round trip of one component by mpi4py-fft; `collapse`: one FFTW plan for several axes."""
    pfft = PFFT(ranks.comm, (n, n, n), dtype="d", grid=(-1, 1, 1), collapse=collapse)
    space, modes = newDistArray(pfft, False), newDistArray(pfft, True)

    def work():
        pfft.forward(space, modes, normalize=False)
        pfft.backward(modes, space, normalize=False)

    return work


def transforms(n, ranks):
    """Round trips of one component [s]: ours, PFFT the better way, planned FFTW (one rank)."""
    transform = SlabTransform((n, n, n), ranks, (1,))
    u, u_hat = transform.physical(1), transform.spectral(1)

    def slab():
        transform.forward(u, u_hat)
        transform.backward(u_hat, u)

    works = [slab, plain_pfft(n, ranks, False), plain_pfft(n, ranks, True)]
    if ranks.size == 1:
        works.append(plain_fftw(n))
    ours, one, other, *fftw_alone = best(works, ranks)
    return {"slab": ours, "pfft": min(one, other), "fftw": min(fftw_alone, default=None)}


def steps(n, ranks):
    """Wall times [s]: a step of RK4 and of ARS(2,2,2), a stage, one transform by FFTW alone."""
    found = {}
    for operators, scheme, stages in (("spectral", "rk4", 4), ("centred", "ars222", 2)):
        flow = ready_flow(n, ranks, operators, scheme)
        works = [lambda flow=flow: flow.advance(0, 1)]
        if ranks.size == 1:  # three components, as the flow has: one alone would stay in the cache
            works.append(plain_fftw(n, 3))
        times = best(works, ranks, repeats=3)
        found[scheme], found[f"{operators} stage"] = times[0], times[0] / stages
        found[f"{operators} fft"] = times[-1] / 6
    return found


def memory(n, ranks):
    """Bytes per grid point that a flow with ARS(2,2,2) holds after a step, by operators."""
    found = {}
    for operators in TRANSFORMS:
        ready_flow(8, ranks, operators, "ars222").advance(0, 1)  # compiled code is not the flow's
        before = resident_bytes()
        flow = ready_flow(n, ranks, operators, "ars222")
        flow.advance(0, 1)
        found[operators] = (resident_bytes() - before) / (n**3 / ranks.size)
        del flow
    return found


def resident_bytes():
    """Memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


JOBS = {"transforms": transforms, "steps": steps, "memory": memory}


def at(ranks, job, n):
    """What a job of this file finds on so many ranks."""
    return launched(__file__, ranks, job, n)


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


def fluidsim_step(n):
    """Wall time of fluidsim's RK4 step [s]; None where it is not installed."""
    if not all(map(find_spec, ("fluidsim", "fluidfft", "pyfftw"))):
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", FLUIDSIM, str(n)],
            env=os.environ | {"FLUIDSIM_PATH": folder, "OMP_NUM_THREADS": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout.splitlines()[-1].split()[1])


def measure():
    """All figures of this file; ratios from the same round, the best round counts."""
    figures = []
    for n in (64, 128):
        rounds = [tuple(at(count, "transforms", n) for count in (1, 2)) for _ in range(ROUNDS)]
        alone = min(one["slab"] / one["fftw"] for one, _ in rounds)
        speedup = max(one["slab"] / two["slab"] for one, two in rounds)
        pfft = max(two["pfft"] / two["slab"] for _, two in rounds)
        figures += [
            Figure(f"transform / planned FFTW, 1 rank, {n}^3", alone, "x", 1.25),
            Figure(f"transform, 2 ranks / 1, {n}^3", speedup, "x", 1.5, most=False),
            Figure(f"PFFT / transform, 2 ranks, {n}^3", pfft, "x", 1.5, most=False),
        ]
    n = 128
    rounds = [(at(1, "steps", n), at(2, "steps", n), fluidsim_step(n)) for _ in range(ROUNDS)]
    for operators, count in TRANSFORMS.items():
        ratio = min(
            one[f"{operators} stage"] / (count * one[f"{operators} fft"]) for one, _, _ in rounds
        )
        figures.append(Figure(f"stage / its {count} FFTs, {operators}, {n}^3", ratio, "x", 1.6))
    peers = [one["rk4"] / peer for one, _, peer in rounds if peer]
    figures.append(
        Figure(f"RK4 step / fluidsim's, {n}^3", min(peers), "x", 1.0)
        if peers
        else Figure.missing(f"RK4 step / fluidsim's, {n}^3", "pip install 'hpcsim[peers]'")
    )
    for scheme, operators in (("rk4", "spectral"), ("ars222", "centred")):
        speedup = max(one[scheme] / two[scheme] for one, two, _ in rounds)
        name = f"step, 2 ranks / 1, {scheme} {operators}, {n}^3"
        figures.append(Figure(name, speedup, "x", 1.6, most=False))
    for ranks in (1, 2):
        for operators, value in at(ranks, "memory", n).items():
            name = f"memory per point of a rank, {operators}, {ranks} rank(s)"
            figures.append(Figure(name, value, "bytes", 250))
    return figures


if __name__ == "__main__":
    world = Ranks.world()
    result = JOBS[sys.argv[1]](int(sys.argv[2]), world)
    if world.is_root:
        print(json.dumps(result))
