"""The end of all ranks when one of them fails: never a hang, one line, the traceback in the log."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpcsim.errors import FAILED, HpcsimError, InputError
from hpcsim.terminal import Terminal, print_safely

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

#: Other ranks wait this long before they speak: if rank 0 failed as well, it speaks for all.
COURTESY_SECONDS = 1.0


@contextlib.contextmanager
def ending_all(ranks: Ranks, terminal: Terminal) -> Iterator[None]:
    """Around the work of a run: bad input is raised on all ranks, all else on one ends all.

    On one rank the exception goes on to the caller once it is logged.
    """
    try:
        yield
    except BaseException as problem:
        if isinstance(problem, InputError) and terminal.folder is None:
            raise  # found on rank 0 and raised on every rank, before any work
        if ranks.size > 1 and not ranks.is_root:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the launcher ends those that wait
            time.sleep(COURTESY_SECONDS)
        record_failure(ranks, terminal, problem)
        if ranks.size == 1:
            raise
        print_safely(f"hpcsim: {one_line(problem)} [rank {ranks.rank}]", sys.stderr)
        ranks.comm.Abort(FAILED)
    finally:
        if terminal.folder:
            terminal.folder.release()


def one_line(problem: BaseException) -> str:
    """What happened, in one line, and where to read more."""
    text = str(problem).splitlines()
    if isinstance(problem, HpcsimError):
        return text[0]
    name = type(problem).__name__
    notes = getattr(problem, "__notes__", [])
    return "; ".join([f"internal error: {name}: {text[0]}" if text else name, *notes])


def record_failure(ranks: Ranks, terminal: Terminal, problem: BaseException) -> None:
    """Traceback to the log and status to the summary, as far as the disk allows."""
    folder = terminal.folder
    if folder is None:
        if not isinstance(problem, HpcsimError):
            traceback.print_exception(problem)
        return
    problem.add_note(f"traceback in {folder.log_path}")
    folder.log(ranks.rank, "".join(traceback.format_exception(problem)))
    with contextlib.suppress(HpcsimError, OSError, ValueError):
        summary = json.loads((folder.path / "summary.json").read_text())
        folder.write_summary(summary | {"status": "failed", "exit": FAILED})
