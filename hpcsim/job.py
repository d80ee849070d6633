"""From a checked case to a job: everything that the case leaves open is decided here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcsim import models
from hpcsim.case.read import apply_changes, check, load, read_case
from hpcsim.case.schema import Case
from hpcsim.errors import InputError, nearest
from hpcsim.models.interface import Model
from hpcsim.output import checkpoint
from hpcsim.time.schedule import Schedule, fit_step, schedule

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


def new_job(name: str, changes: Mapping[str, Any] | Sequence[str], ranks: int) -> Job:
    """The job of a built-in case or file; `ranks` are those that share this machine."""
    case = read_case(name, changes)
    kind: type[Model] = models.load(case.case.model)
    case, notes = kind.settle(case)
    limits = kind.time_limits(case)
    wanted = (
        min(limits.values(), default=case.output.every) if case.time.dt == "auto" else case.time.dt
    )
    dt = fit_step(case.time.end, case.output.every, wanted)
    if case.time.dt != "auto" and dt < wanted * (1 - 1e-9):
        notes.append(
            f"dt = {dt:.12g} instead of {wanted:g}: it must divide output.every and time.end"
        )
    checkpoint_every = case.output.checkpoint_every
    if checkpoint_every == "auto":
        checkpoint_every = case.time.end / 10
    case = changed(case, {"time": {"dt": dt}, "output": {"checkpoint_every": checkpoint_every}})
    return job(case, kind, limits, notes, ranks)


def restarted_job(folder: Path, changes: Mapping[str, Any] | Sequence[str], ranks: int) -> Job:
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
                f"--set {key}: cannot change on --restart{nearest(key, list(CHANGEABLE))} "
                f"(only {', '.join(CHANGEABLE)} can)"
                for key in forbidden
            )
        )
    case = check(source)
    kind: type[Model] = models.load(case.case.model)
    going_on = job(case, kind, kind.time_limits(case), [], ranks)
    reached = max(
        (checkpoint.step_of(path) for path in checkpoint.paths(folder / "checkpoints")), default=0
    )
    if reached > going_on.schedule.steps:
        raise InputError(
            f"{source.place(['time', 'end'])}: time.end = {case.time.end:g}: the run is already at "
            f"t = {going_on.schedule.time(reached):g} s"
        )
    return going_on


def job(
    case: Case, kind: type[Model], limits: dict[str, float], notes: list[str], ranks: int
) -> Job:
    """The job of a settled case, if it fits in memory."""
    every, dt, saves = case.output.every, case.time.dt, case.output.checkpoint_every
    if isinstance(dt, str) or isinstance(saves, str):
        raise InputError(
            "case.toml of a run folder: time.dt and output.checkpoint_every are numbers"
        )
    plan = schedule(case.time.end, every, dt, saves)
    memory, free = kind.memory(case, ranks), available_memory()
    if memory * ranks > free:
        raise InputError(
            f"{case.case.name}: needs {memory * ranks / 2**30:.3g} GiB for {ranks} ranks on this "
            f"machine, which has {free / 2**30:.3g} GiB free; make it smaller or use more machines"
        )
    return Job(case, kind, plan, limits, memory, tuple(notes))


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
