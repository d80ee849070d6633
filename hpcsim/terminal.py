"""What a run says: rank 0 prints, the log keeps it; progress is a bar or a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcsim.output.folder import RunFolder
    from hpcsim.parallel.ranks import Ranks

FIRST_LINE_SECONDS = 5.0
LAST_LINE_SECONDS = 300.0


class Terminal:
    """The voice of a run; `quiet` keeps the log but prints nothing."""

    def __init__(self, ranks: Ranks, quiet: bool = False) -> None:
        self.ranks = ranks
        self.speaks = ranks.is_root and not quiet
        self.folder: RunFolder | None = None

    def say(self, text: str) -> None:
        """A line on the terminal and in the log, from rank 0."""
        if self.speaks:
            print_safely(text, sys.stdout)
        if self.ranks.is_root and self.folder:
            self.folder.log(0, text)

    def progress(self, first: int, steps: int, dt: float) -> Progress:
        """Progress of the loop from step `first` to `steps`."""
        return Progress(self, first, steps, dt)


class Progress:
    """Steps, simulated time, speed and time left: live on a terminal, else lines ever rarer."""

    def __init__(self, terminal: Terminal, first: int, steps: int, dt: float) -> None:
        self.terminal = terminal
        self.first, self.steps, self.dt = first, steps, dt
        self.began = time.monotonic()
        self.wait = FIRST_LINE_SECONDS
        self.next_line = self.began + self.wait
        self.bar: Any = None
        if terminal.speaks and sys.stdout.isatty():
            from tqdm import tqdm

            self.bar = tqdm(
                total=steps,
                initial=first,
                unit="step",
                file=sys.stdout,
                dynamic_ncols=True,
                leave=False,
            )

    def show(self, step: int) -> None:
        """Tell how far the run is."""
        if self.bar is not None:
            self.bar.set_description_str(f"t = {step * self.dt:.4g} s", refresh=False)
            self.bar.update(step - self.bar.n)
        elif time.monotonic() >= self.next_line:
            self.wait = min(2 * self.wait, LAST_LINE_SECONDS)
            self.next_line += self.wait
            spent = time.monotonic() - self.began
            speed = (step - self.first) / spent
            left = (self.steps - step) / speed if speed else float("inf")
            self.terminal.say(
                f"step {step} of {self.steps}, t = {step * self.dt:.4g} s, "
                f"{speed:.3g} steps/s, {duration(left)} left"
            )

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()


def duration(seconds: float) -> str:
    """Seconds in words: 4.2 s, 3 min 10 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds == float("inf"):
        return "unknown time"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def print_safely(text: str, stream: Any) -> None:
    """Print; a closed terminal or pipe is no reason to stop a simulation."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=stream, flush=True)
