"""`hpcsim run --dry-run`: what would run, without writing anything."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from hpcsim.errors import FINISHED
from hpcsim.job import Job
from hpcsim.models.interface import Model
from hpcsim.parallel.ranks import Ranks
from hpcsim.terminal import Terminal, duration

TRIAL_SECONDS = 0.5


def describe(job: Job, path: Path, restart: bool, ranks: Ranks, terminal: Terminal) -> int:
    """Print steps, dt and its limits, memory, output and the estimated time."""
    plan, case, say = job.schedule, job.case, terminal.say
    model: Model = job.kind(case, ranks)
    ranks.root_first(model.prepare)
    notes = model.begin()
    frames = plan.steps // plan.frame_steps + 1
    frame_bytes = sum(int(np.prod(s.shape)) * s.local.itemsize for s in model.frame().values())
    seconds = seconds_per_step(model, ranks)
    say(f"{case.case.name}: model {case.case.model}, ranks {ranks.size}, would run in {path}")
    if not restart and path.exists() and any(path.iterdir()):
        say("  note: that folder is not empty: --restart, --force or another --out will be needed")
    for note in (*job.notes, *notes):
        say(f"  note: {note}")
    say(f"  steps      {plan.steps} ({case.time.scheme}), to t = {case.time.end:g} s")
    say(f"  dt         {plan.dt:g} s")
    for name, limit in sorted(job.limits.items(), key=lambda item: item[1]):
        say(f"  dt limit   {limit:.3g} s: {name}")
    say(f"  output     {frames} frames, {frames * frame_bytes / 2**20:.3g} MiB in all")
    say(f"  memory     {job.memory / 2**20:.3g} MiB per rank")
    say(f"  time       about {duration(plan.steps * seconds)} (from a short trial, without output)")
    return FINISHED


def seconds_per_step(model: Model, ranks: Ranks) -> float:
    """Wall time of a step, by trial; the same on all ranks."""
    done, count, spent = 0, 1, 0.0
    while spent < TRIAL_SECONDS and done < 100_000:
        before = time.monotonic()
        model.advance(done, count)
        (seconds,) = ranks.vote(time.monotonic() - before)
        spent += seconds
        done += count
        count *= 2
    return spent / done
