"""Speed of ensembles, measured on heavy tops: one core, against SciPy, two ranks, with output.

`python scripts/bench/ensemble.py MEMBERS STEPS` is the job that is started under mpirun.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import hpcsim
from hpcsim.bench import Figure
from hpcsim.job import new_job
from hpcsim.models.tops.gyroscope import Gyroscope
from hpcsim.parallel.launcher import mpirun_environment
from hpcsim.parallel.ranks import Ranks

REPEATS = 7


class OneRank:
    """Stands for a run on one rank, without starting MPI."""

    rank, size, is_root = 0, 1, True

    def block(self, total):
        return 0, total


def ensemble(members: int, ranks, **changes):
    """A ready ensemble of tops that differ in spin."""
    keys = {"ensemble.members": members, "start.tilt": 0.5, "start.spin": {"range": [400.0, 800.0]}}
    model = Gyroscope(new_job("gyroscope", keys | changes, 1).case, ranks)
    model.prepare()
    return model


def best(work, repeats: int = REPEATS) -> float:
    """Shortest of several wall times [s]."""
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return min(times)


def step_nanoseconds(members: int = 4096, steps: int = 500) -> float:
    """Wall time of an RK4 step of one member on one core."""
    model = ensemble(members, OneRank())
    return 1e9 * best(lambda: model.advance(0, steps)) / (members * steps)


def final_states(dt: float, end: float, members: int) -> tuple[np.ndarray, float]:
    """Final states (member, 8) of hpcsim at a step, and the wall time per member [s]."""
    model = ensemble(members, OneRank(), **{"time.dt": dt, "time.end": end, "output.every": end})
    steps = round(end / model.case.time.dt)
    initial = {name: share.local.copy() for name, share in model.state().items()}

    def work():
        model.restore(initial)
        model.advance(0, steps)

    seconds = best(work, 3) / members
    return model.state()["members"].local, seconds


def against_scipy(end: float = 1.0, members: int = 1024, sample: int = 4) -> tuple[float, float]:
    """Ratio of wall times per trajectory, SciPy over hpcsim, both at an error of 1e-6 at most.

    Also hpcsim's error. The error is the largest of any component of q, w1, w2 over the sample.
    """
    from scipy.integrate import solve_ivp

    model = ensemble(members, OneRank(), **{"time.end": end})
    coefficients, given = model.coefficients(model.values), model.given(model.values)

    def rate(t, y, ratio, weight):
        q0, q1, q2, q3, w1, w2, w3, _ = y
        gyration = ratio * w3
        return [
            -0.5 * (q1 * w1 + q2 * w2),
            0.5 * (q0 * w1 - q3 * w2),
            0.5 * (q0 * w2 + q3 * w1),
            0.5 * (q1 * w2 - q2 * w1),
            weight * (q2 * q3 + q0 * q1) - gyration * w2,
            gyration * w1 - weight * (q1 * q3 - q0 * q2),
            0.0,
            w3,
        ]

    picked = np.linspace(0, members - 1, sample).astype(int)

    def start(member):
        tilt, spin, _, _ = given[member]
        return [np.cos(tilt / 2), np.sin(tilt / 2), 0, 0, 0, 0, spin, 0]

    def scipy_states(tolerance):
        return np.array(
            [
                solve_ivp(
                    rate,
                    (0, end),
                    start(member),
                    method="DOP853",
                    rtol=tolerance,
                    atol=tolerance,
                    args=tuple(coefficients[member, :2]),
                ).y[:, -1]
                for member in picked
            ]
        )

    truth = scipy_states(1e-13)[:, :6]
    tolerance = 1e-3
    while np.abs(scipy_states(tolerance)[:, :6] - truth).max() > 1e-6:
        tolerance /= 2
    scipy_seconds = best(lambda: scipy_states(tolerance), 3) / sample
    dt = 0.02
    while True:
        states, seconds = final_states(dt, end, members)
        error = np.abs(states[picked, :6] - truth).max()
        if error <= 1e-6:
            return scipy_seconds / seconds, float(error)
        dt /= 1.25


def launched(ranks: int, members: int, steps: int) -> float:
    """Member-steps per second of this file as a job on so many ranks."""
    return sum(started([["mpirun", "-n", str(ranks)]], members, steps))


def apart(processes: int, members: int, steps: int) -> float:
    """The same by as many separate processes at once: what the machine allows."""
    return sum(started([[]] * processes, members // processes, steps))


def started(launchers: list[list[str]], members: int, steps: int) -> list[float]:
    """Start this file as a job below each launcher, all at once; what they print."""
    jobs = [
        subprocess.Popen(
            [*launcher, sys.executable, __file__, str(members), str(steps)],
            env=mpirun_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for launcher in launchers
    ]
    return [float(job.communicate()[0]) for job in jobs]


def job(members: int, steps: int) -> None:
    """Advance an ensemble on all ranks and print the speed, the best of several."""
    ranks = Ranks.world()
    model = ensemble(members, ranks)
    seconds = np.inf
    for _ in range(3 * REPEATS):
        ranks.barrier()
        before = time.perf_counter()
        model.advance(0, steps)
        seconds = min(seconds, ranks.vote(time.perf_counter() - before)[0])
    if ranks.is_root:
        print(members * steps / seconds)


def with_output(members: int = 16384, steps: int = 4000, frame_steps: int = 100) -> float:
    """Speed of a run with a frame every so many steps over one that records its ends only."""
    dt = 5e-4
    found = {frame_steps: [], steps: []}
    for _ in range(4):
        for every, speeds in found.items():
            with tempfile.TemporaryDirectory(dir=".") as folder:
                changes = {
                    "ensemble.members": members,
                    "start.tilt": 0.5,
                    "start.spin": {"range": [400.0, 800.0]},
                    "time.end": steps * dt,
                    "output.every": every * dt,
                    "output.checkpoint_every": steps * dt,
                }
                run = hpcsim.run("gyroscope", changes, out=Path(folder) / "run", quiet=True)
                speeds.append(run.summary["figures"]["steps_per_second"])
    return max(found[frame_steps]) / max(found[steps])


def measure() -> list[Figure]:
    """All figures of this file."""
    ratio, error = against_scipy()
    members, steps = 16384, 400
    rounds = []
    for _ in range(5):  # one after the other, so that each round sees the same machine
        one, two = launched(1, members, steps), launched(2, members, steps)
        rounds.append((two / one, apart(2, members, steps) / apart(1, members, steps)))
    speedup, allowed = np.median(rounds, axis=0)
    return [
        Figure("RK4 step of one top, one core", step_nanoseconds(), "ns", 12),
        Figure("SciPy solve_ivp loop / hpcsim, equal error", ratio, "x", 100, most=False),
        Figure("  the error that both keep (1e-6)", error, "", 1e-6),
        Figure("2 ranks / 1 rank, median of 5", speedup, "x", 1.8, most=False),
        Figure("  2 separate processes / 1: what the machine allows", allowed, "x"),
        Figure("speed with a frame every 100 steps / without", with_output(), "", 0.7, most=False),
    ]


if __name__ == "__main__":
    job(int(sys.argv[1]), int(sys.argv[2]))
