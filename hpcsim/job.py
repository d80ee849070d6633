"""From a checked case to a job: everything that the case leaves open is decided here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcsim import models
from hpcsim.case.read import Source, apply_changes, check, load
from hpcsim.case.schema import Case
from hpcsim.errors import InputError, nearest
from hpcsim.models.interface import Model
from hpcsim.output import checkpoint
from hpcsim.output.segments import BUFFER_BYTES
from hpcsim.time.schedule import Misfit, Schedule, fit_step, schedule

#: What may change when a run goes on.
CHANGEABLE = ("time.end", "time.wall_limit", "output.checkpoint_every")


@dataclass(frozen=True)
class Job:
    """A case with everything decided: model, schedule, limits of dt [s], bytes per rank."""

    case: Case
    kind: type[Model]
    schedule: Schedule
    limits: dict[str, float]
    memory: int
    notes: tuple[str, ...]


def new_job(
    name: str, changes: Mapping[str, Any] | Sequence[str], ranks: int = 1, here: int = 1
) -> Job:
    """The job of a built-in case or file on so many ranks, of which `here` are on this machine."""
    source = load(name)
    apply_changes(source, changes)
    case = check(source)
    kind: type[Model] = models.load(case.case.model)
    given = case.time.dt
    case, notes = kind.settle(case)
    automatic = min(kind.time_limits(case).values(), default=case.output.every)
    wanted = automatic if isinstance(case.time.dt, str) else case.time.dt
    with blaming(source):
        dt = fit_step(case.time.end, case.output.every, wanted)
    if given != "auto" and dt > automatic * (1 + 1e-9):
        notes.append(
            f'dt = {dt:g} is above {automatic:.3g}, what "auto" would take: mind the errors'
        )
    if given != "auto" and dt < wanted * (1 - 1e-9):
        notes.append(f"dt = {dt:.12g} instead of {wanted:g}: it divides output.every and time.end")
    saves = case.output.checkpoint_every
    if saves == "auto":
        saves = case.time.end / 10
    case = changed(case, {"time": {"dt": dt}, "output": {"checkpoint_every": saves}})
    return settled_job(case, kind, source, notes, ranks, here)


def restarted_job(
    folder: Path, changes: Mapping[str, Any] | Sequence[str], ranks: int, here: int
) -> Job:
    """The job of a run folder that goes on; only a few keys may change."""
    path = folder / "case.toml"
    if not path.is_file():
        raise InputError(f"{folder}: nothing to restart (no case.toml in it)")
    source = load(str(path))
    apply_changes(source, changes)
    forbidden = [".".join(key) for key in source.said if ".".join(key) not in CHANGEABLE]
    if forbidden:
        raise InputError(
            *(
                f"--set {key}: cannot change on --restart{nearest(key, list(CHANGEABLE), 0.85)} "
                f"(only {', '.join(CHANGEABLE)} can)"
                for key in forbidden
            )
        )
    case = check(source)
    notes = [f"the case is the one of the folder, {path}"]
    job = settled_job(case, models.load(case.case.model), source, notes, ranks, here)
    saved = checkpoint.paths(folder / "checkpoints")
    reached = max((checkpoint.step_of(path) for path in saved), default=0)
    if reached > job.schedule.steps:
        raise InputError(
            f"{source.place(['time', 'end'])}: time.end = {case.time.end:g}: the run is already at "
            f"t = {job.schedule.time(reached):g} s"
        )
    return job


def settled_job(
    case: Case, kind: type[Model], source: Source, notes: list[str], ranks: int, here: int
) -> Job:
    """The job of a case that leaves nothing open, if it fits in memory."""
    every, dt, saves = case.output.every, case.time.dt, case.output.checkpoint_every
    if isinstance(dt, str) or isinstance(saves, str):
        raise InputError(
            f"{source.file}: the case of a run folder has numbers for dt and checkpoints"
        )
    with blaming(source):
        plan = schedule(case.time.end, every, dt, saves)
    if plan.steps % plan.frame_steps:
        last = plan.time(plan.steps - plan.steps % plan.frame_steps)
        notes.append(
            f"time.end = {case.time.end:g} is no multiple of output.every: the last frame, and the "
            f"figures, are those of t = {last:g} s"
        )
    memory, free = kind.memory(case, ranks) + BUFFER_BYTES, available_memory()
    if memory * here > free:
        raise InputError(
            f"{source.file}: needs {memory * here / 2**30:.3g} GiB on {here} rank(s) of this "
            f"machine, which has {free / 2**30:.3g} GiB free; make {kind.size_key} smaller or use "
            "more machines"
        )
    notes += kind.remarks(case, ranks)
    return Job(case, kind, plan, kind.time_limits(case), memory, tuple(notes))


@contextmanager
def blaming(source: Source) -> Iterator[None]:
    """Say where the key was set whose time does not fit."""
    try:
        yield
    except Misfit as problem:
        place = source.place(problem.key.split("."))
        raise InputError(f"{place}: {problem.key}{problem.text}") from None


def changed(case: Case, tables: Mapping[str, Mapping[str, Any]]) -> Case:
    """A copy of the case with some keys set."""
    update = {
        name: getattr(case, name).model_copy(update=dict(keys)) for name, keys in tables.items()
    }
    return case.model_copy(update=update)


def available_memory() -> int:
    """Bytes that this machine can still give."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
