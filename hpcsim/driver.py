"""One driver for every model: case → set-up → loop (step, frame, checkpoint) → summary."""

from __future__ import annotations

import datetime
import platform
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hpcsim
from hpcsim.case.show import as_toml
from hpcsim.errors import DIVERGED, FINISHED, STOPPED
from hpcsim.job import Job, new_job, restarted_job
from hpcsim.models.interface import Model
from hpcsim.output import checkpoint
from hpcsim.output.folder import RunFolder, free_name
from hpcsim.output.hdf5 import require_parallel
from hpcsim.output.run import Run
from hpcsim.output.segments import Recorder, drop_after, gather
from hpcsim.parallel import signals
from hpcsim.parallel.ranks import Ranks
from hpcsim.terminal import Terminal, duration
from hpcsim.transform import wisdom

STATUS = {FINISHED: "finished", DIVERGED: "diverged", STOPPED: "stopped"}
#: A signal or the wall limit is noticed after this much work at most.
STRIDE_SECONDS = 0.2
#: A run that is still going lets others see its frames after this time at the latest.
SEAL_SECONDS = 20.0
#: How often a state to go back to is kept in memory, for the case that the run diverges.
KEEP_SECONDS = 5.0


@dataclass(frozen=True)
class Order:
    """What a user asks for: a case with changes, a folder, and how to treat what is in it."""

    case: str
    changes: Mapping[str, Any] | Sequence[str] = ()
    out: Path | None = None
    restart: bool = False
    force: bool = False


def decide(order: Order, ranks: Ranks) -> tuple[Job, RunFolder]:
    """The job and its folder, checked on rank 0 before anything is written."""
    here = ranks.on_this_machine()

    path = order.out or Path("runs") / Path(order.case).name.removesuffix(".toml")

    def work() -> Job:
        if order.restart:
            job = restarted_job(path, order.changes, ranks.size, here)
        else:
            job = new_job(order.case, order.changes, ranks.size, here)
        RunFolder(path).check_free(order.restart, order.force)
        return job

    job = ranks.on_root(work)
    require_parallel(ranks)
    return job, RunFolder(path)


def execute(
    order: Order, ranks: Ranks, stop: signals.StopSignals, terminal: Terminal
) -> tuple[int, RunFolder]:
    """Run a case in its folder on all ranks; the exit code and the folder."""
    began = time.monotonic()
    job, folder = decide(order, ranks)
    folder.claim(order.restart, order.force, ranks)
    terminal.folder = folder
    return Simulation(job, folder, ranks, stop, terminal, began).run(order.restart), folder


class Simulation:
    """A run under way: the model, its place in time, and what has to be decided between steps."""

    def __init__(
        self,
        job: Job,
        folder: RunFolder,
        ranks: Ranks,
        stop: signals.StopSignals,
        terminal: Terminal,
        began: float,
    ) -> None:
        self.job, self.folder, self.ranks = job, folder, ranks
        self.stop, self.terminal, self.began = stop, terminal, began
        self.plan = job.schedule
        self.step = 0
        self.text = as_toml(job.case)
        self.save_seconds = 0.0
        self.reason = ""
        self.loop_seconds = 0.0
        self.first_step = 0
        self.old_speed = folder.old_figure("steps_per_second")

    def run(self, restart: bool) -> int:
        """Set up, loop, gather, sum up; the exit code."""
        self._announce()
        plans = self.folder.path / "fft-plans.txt"
        wisdom.start_from(plans if restart and self.ranks.share(plans.exists()) else None)
        self.model: Model = self.job.kind(self.job.case, self.ranks)
        self.ranks.root_first(self.model.prepare)
        with np.errstate(all="ignore"):
            notes = self.model.begin()
        if not restart:
            for note in notes:
                self.terminal.say(f"note: {note}")
        if wisdom.in_use() and self.ranks.is_root:
            wisdom.save(plans)
        self._begin(restart)
        code = self._loop()
        self._finish(code)
        return code

    # ---- set-up ----

    def _announce(self) -> None:
        case = self.job.case
        say = self.terminal.say
        say(
            f"hpcsim {hpcsim.__version__}: {case.case.name} ({case.case.title or case.case.model}) "
            f"on {self.ranks.size} rank{'s' if self.ranks.size > 1 else ''}, in {self.folder.path}"
        )
        for note in self.job.notes:
            say(f"note: {note}")
        if self.ranks.is_root:
            self.folder.write_case(self.text)
            self._summarise("running", None, {})

    def _begin(self, restart: bool) -> None:
        """Take the newest good checkpoint when restarting, and open the recorder there."""
        state = self.model.state()
        axes = {name: share.axis for name, share in state.items()}
        saved: checkpoint.Checkpoint | None = None
        damaged: list[str] = []
        if restart:
            saved, damaged = checkpoint.newest_good(self.folder.checkpoints, axes, self.ranks)
            for line in damaged:
                self.terminal.say(f"warning: {line}")
        frames = 0
        if saved:
            self.model.restore(checkpoint.read(saved, state))
            self.step, frames = saved.step, saved.frames
            self.terminal.say(
                f"restart from {saved.path.name}, t = {self.plan.time(self.step):g} s"
            )
        elif restart:
            self.terminal.say(f"no {'good ' if damaged else ''}checkpoint: starting anew")
        self.first_step = self.step
        if self.ranks.is_root:
            self._clear_up(bool(saved), bool(damaged))
        self.ranks.barrier()
        self.recorder = Recorder(self.folder.segments, self.model.quantities, self.ranks, frames)
        self.recorder.write_constants(self.model.constants())

    def _clear_up(self, saved: bool, damaged: bool) -> None:
        """Remove what will be computed again; set aside what perhaps cannot."""
        folder = self.folder
        for path in folder.path.rglob("*.part"):
            path.unlink(missing_ok=True)
        for path in checkpoint.paths(folder.checkpoints):
            if not saved or checkpoint.step_of(path) > self.step:
                path.rename(path.with_name(path.name + ".damaged"))
        output = folder.path / "output.h5"
        if not saved and (damaged or output.exists()):
            for path in (output, folder.segments):
                if path.exists():
                    path.rename(free_name(path))
            folder.segments.mkdir()
        drop_after(folder.segments, self.step if saved else -1)

    # ---- the loop ----

    def _loop(self) -> int:
        plan, model = self.plan, self.model
        progress = self.terminal.progress(self.step, plan.steps, plan.dt)
        pace = 1
        sealed = kept = start = time.monotonic()
        seal_due, keep_due = False, True
        code = FINISHED
        while True:
            if self.step == self.recorder.frames * plan.frame_steps:
                with np.errstate(all="ignore"):
                    self.recorder.record(plan.time(self.step), model.frame())
            # Only here, behind the frame of this step: a segment is named by its last step.
            if self.recorder.full or seal_due:
                self.recorder.seal(self.step)
                sealed = time.monotonic()
            if keep_due:
                self._keep()
                kept = time.monotonic()
            if self.step >= plan.steps or code != FINISHED:
                break
            if self.step > self.first_step and self.step % plan.checkpoint_steps == 0:
                self._save()
                sealed = time.monotonic()
            count = min(pace, *(every - self.step % every for every in self._events()))
            count = min(count, plan.steps - self.step)
            before = time.monotonic()
            model.advance(self.step, count)
            now = time.monotonic()
            trouble = model.trouble()
            signal, failed, out_of_time, cost, unsealed, unkept = self.ranks.vote(
                self.stop.received,
                bool(trouble),
                self._out_of_time(now),
                (now - before) / count,
                now - sealed,
                now - kept,
            )
            if failed:
                self.reason = self._find_last_good(self.ranks.first(trouble), self.step + count)
                code = DIVERGED
                break
            self.step += count
            progress.show(self.step)
            fitting = max(1, int(STRIDE_SECONDS / max(cost, 1e-9)))
            pace = min(fitting, 4 * count if count == pace else pace)
            seal_due, keep_due = unsealed > SEAL_SECONDS, unkept > KEEP_SECONDS
            if self.step < plan.steps and (signal or out_of_time):
                limit = f"wall-time limit of {self.job.case.time.wall_limit:g} s"
                self.reason = f"{signals.name(int(signal))} received" if signal else limit
                code = STOPPED
        self.loop_seconds = time.monotonic() - start
        progress.close()
        self._save()
        return code

    def _events(self) -> tuple[int, int]:
        return self.plan.frame_steps, self.plan.checkpoint_steps

    def _keep(self) -> None:
        """Keep a copy of the state to go back to."""
        self.kept_step = self.step
        self.kept = {name: share.local.copy() for name, share in self.model.state().items()}

    @np.errstate(all="ignore")
    def _find_last_good(self, trouble: str, seen: int) -> str:
        """Go back to the kept state, find the step that failed, and end just before it."""
        bad = self._replay(seen, watch=True)
        self.step = bad - 1
        self._replay(self.step, watch=False)
        when = f"step {bad}, t = {self.plan.time(bad):g} s, dt = {self.plan.dt:g} s"
        return f"{trouble} (it happened in {when})"

    def _replay(self, last: int, watch: bool) -> int:
        """Repeat the steps after the kept one, to `last` or one that fails; where it ended."""
        self.model.restore(self.kept)
        step = self.kept_step
        while step < last:
            self.model.advance(step, 1)
            step += 1
            if watch and self.ranks.vote(bool(self.model.trouble()))[0]:
                break
            if step % self.plan.frame_steps == 0 and step < last + (not watch):
                self.model.frame()  # for the tallies that frames keep
        return step

    def _out_of_time(self, now: float) -> bool:
        """Whether the wall limit is so near that stopping must begin now."""
        limit = self.job.case.time.wall_limit
        if not limit:
            return False
        reserve = 2 * self.save_seconds + self.recorder.gather_seconds() + 2 * STRIDE_SECONDS
        return now - self.began + reserve >= limit

    def _save(self) -> None:
        """Seal the frames, then the state."""
        before = time.monotonic()
        self.recorder.seal(self.step)
        checkpoint.write(
            self.folder.checkpoints, self.step, self.recorder.frames, self.model.state(), self.ranks
        )
        (self.save_seconds,) = self.ranks.vote(time.monotonic() - before)
        if self.ranks.is_root:
            self._summarise("running", None, {})

    # ---- the end ----

    def _finish(self, code: int) -> None:
        """One output file, figures, summary, and a closing line."""
        case = self.job.case.case
        attributes = {
            "hpcsim_version": hpcsim.__version__,
            "case": case.name,
            "model": case.model,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "units": "SI",
            "case_toml": self.text,
        }
        gather(self.folder.path, attributes, self.ranks)
        if code == DIVERGED:
            with np.errstate(all="ignore"):
                self.model.frame()  # so that the drifts tell how far it went
        done = self.step - self.first_step
        with np.errstate(all="ignore"):
            figures = self.model.figures(Run(self.folder.path))
        speed = done / self.loop_seconds if done else self.old_speed
        if speed:
            figures["steps_per_second"] = speed
            figures["seconds_per_step"] = 1 / speed
        if self.ranks.is_root:
            self._summarise(STATUS[code], code, figures)
        self.ranks.barrier()  # whoever reads the folder now finds it complete
        say = self.terminal.say
        spent = duration(time.monotonic() - self.began)
        if code == FINISHED:
            say(f"finished: {self.step} steps, t = {self.plan.time(self.step):g} s, in {spent}")
        elif code == STOPPED:
            again = f"hpcsim run {case.name} --restart --out {shlex.quote(str(self.folder.path))}"
            where = f"step {self.step}, t = {self.plan.time(self.step):g} s"
            say(f"stopped at {where}: {self.reason}; go on with: {again}")
        else:
            say(f"diverged: {self.reason}; the last good state is saved, --force starts anew")
        for name, figure in figures.items():
            say(f"  {name} = {figure:.10g}")

    def _summarise(self, status: str, code: int | None, figures: Mapping[str, float]) -> None:
        finite = {name: value for name, value in figures.items() if np.isfinite(value)}
        self.folder.write_summary(
            {
                "case": self.job.case.case.name,
                "model": self.job.case.case.model,
                "status": status,
                "exit": code,
                "steps": self.step,
                "time": self.plan.time(self.step),
                "wall_seconds": time.monotonic() - self.began,
                "ranks": self.ranks.size,
                "versions": versions(),
                "figures": finite,
            }
        )


def versions() -> dict[str, str]:
    """The software that a run depends on."""
    from importlib.metadata import version

    packages = ("numpy", "numba", "mpi4py", "h5py")
    return {"hpcsim": hpcsim.__version__, "python": platform.python_version()} | {
        package: version(package) for package in packages
    }
