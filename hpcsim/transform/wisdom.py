"""FFTW's wisdom: kept per machine, copied into run folders, the same on every rank.

Plans found by measuring differ from start to start, and so do the last bits of what they compute.
Wisdom makes them the same: a new run takes what this machine has learned before, a restart takes
what its run has used.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hpcsim.transform import fftw

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

#: The file that plans go by (none: the machine's), and whether it has been read.
_file: Path | None = None
_ready = False


def machine_file() -> Path:
    """Where this user keeps the wisdom of this kind of machine."""
    facts = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        facts += sorted({line for line in lines if line.startswith(("model name", "flags"))})
    name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(user) / "hpcsim" / "wisdom" / f"{name}.txt"


def planning(
    ranks: Ranks, key: tuple[int, ...], effort: fftw.Effort, make_plans: Callable[[], None]
) -> None:
    """Make plans on all ranks such that equal jobs get equal plans.

    Of the ranks with the same key the lowest measures; the others plan by what it found.
    """
    if effort == fftw.Effort.ESTIMATE:  # wisdom would give it measured plans
        known = fftw.export_wisdom()
        fftw.forget_wisdom()
        make_plans()
        fftw.import_wisdom(known)
        return
    if not _ready:
        use(ranks, _file or machine_file())
    known = fftw.export_wisdom()
    keys = ranks.comm.allgather(key) if ranks.size > 1 else [key]
    measures = keys.index(key) == ranks.rank
    if measures:
        make_plans()
    if ranks.size > 1:
        learned = ranks.comm.allgather(fftw.export_wisdom() if measures else "")
        for text in filter(None, learned):
            fftw.import_wisdom(text)
        if not measures:
            make_plans()
    if ranks.is_root and _file is None and fftw.export_wisdom() != known:
        add_to(machine_file())


def start_from(path: Path | None) -> None:
    """A run begins: its plans go by this file, or by what the machine knows."""
    global _file, _ready
    _file, _ready = path, False


def use(ranks: Ranks, path: Path) -> None:
    """Forget what is known and take the wisdom of a file, if there is any, on all ranks."""
    global _ready
    text = ""
    if ranks.is_root:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="ascii")
    text = ranks.share(text)
    fftw.forget_wisdom()
    if text:
        fftw.import_wisdom(text)
    _ready = True


def add_to(path: Path) -> None:
    """Add what this process knows to a file that others write too: one after the other."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                fftw.import_wisdom(path.read_text(encoding="ascii"))
            save(path)


def save(path: Path) -> None:
    """Keep what this process knows; a file that cannot be written is no reason to stop."""
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(fftw.export_wisdom())
        os.replace(file.name, path)


def in_use() -> bool:
    """Whether this process has measured plans."""
    return _ready
