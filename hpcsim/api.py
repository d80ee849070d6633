"""The functions of `import hpcsim`; heavy imports wait until they are called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcsim.output.run import Run


def run(
    case: str,
    changes: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    restart: bool = False,
    force: bool = False,
    quiet: bool = False,
) -> Run:
    """Run a built-in case or TOML file and open its results; under mpirun, call it on all ranks.

    `changes` maps dotted keys to values, as `--set` does. Raises `hpcsim.errors.InputError` for
    bad input; a run that diverged or was stopped is returned with that status in `.summary`.

    >>> import hpcsim, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = hpcsim.run("gyroscope", {"time.end": 0.01}, out=folder, quiet=True)
    ...     result.summary["status"], result["ensemble/state"].shape
    ('finished', (3, 256, 8))
    """
    from hpcsim.driver import Order, execute
    from hpcsim.output.run import Run
    from hpcsim.parallel.ending import ending_all
    from hpcsim.parallel.ranks import Ranks
    from hpcsim.parallel.signals import StopSignals
    from hpcsim.terminal import Terminal

    ranks = Ranks.world()
    terminal = Terminal(ranks, quiet)
    with StopSignals() as stop, ending_all(ranks, terminal):
        order = Order(case, changes or {}, Path(out) if out else None, restart, force)
        _, folder = execute(order, ranks, stop, terminal)
    return Run(folder.path)


def open_run(folder: str | Path) -> Run:
    """The results in a run folder, also of a run that was killed or is still going."""
    from hpcsim.output.run import Run

    return Run(folder)
