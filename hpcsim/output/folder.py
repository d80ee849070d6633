"""A run folder: claimed by one run at a time, with its log and its summary."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hpcsim.errors import InputError
from hpcsim.output.hdf5 import write_text

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

#: How long a restart waits for the last ranks of a killed run to be gone.
PATIENCE_SECONDS = 3.0
#: What file systems without locks answer; a run there is not protected from a second one.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)


class RunFolder:
    """The folder of a run. While any of its ranks lives, each holds a lock on `log.txt`.

    The kernel lets the lock go with the process, however it ends, so none is ever left behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_path = path / "log.txt"
        self.case_path = path / "case.toml"
        self.segments = path / "segments"
        self.checkpoints = path / "checkpoints"
        self._log: IO[str] | None = None

    # ---- claiming ----

    def check_free(self, restart: bool, force: bool) -> None:
        """Refuse, without touching anything, a folder that this run may not use."""
        try:
            filled = self.path.exists() and any(self.path.iterdir())
        except NotADirectoryError:
            raise InputError(f"{self.path}: is a file, not a folder") from None
        except OSError as problem:
            raise InputError(f"{self.path}: cannot be read: {problem.strerror}") from None
        if restart and not self.case_path.exists():
            raise InputError(f"{self.path}: nothing to restart (no case.toml in it)")
        if filled and not restart and not force:
            raise InputError(
                f"{self.path}: not empty; --restart goes on with that run, --force sets it aside, "
                "--out names another folder"
            )
        if self.log_path.exists() and self.busy(PATIENCE_SECONDS if restart else 0.0):
            raise self._in_use()
        beside = next(parent for parent in (self.path, *self.path.parents) if parent.exists())
        if not beside.is_dir():
            raise InputError(f"{self.path}: cannot be made: {beside} is a file")
        if not os.access(beside, os.W_OK):
            raise InputError(f"{self.path}: cannot be written: no write permission in {beside}")

    def busy(self, patience: float = 0.0) -> bool:
        """Whether a living run holds the folder."""
        until = time.monotonic() + patience
        while True:
            try:
                with self.log_path.open("a+") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
            except BlockingIOError:
                if time.monotonic() >= until:
                    return True
                time.sleep(0.1)
            except OSError:
                return False  # no locks on this file system, or a read-only one

    def claim(self, restart: bool, force: bool, ranks: Ranks) -> None:
        """Take the folder: rank 0 alone at first, then every rank holds a share of the lock."""
        ranks.on_root(lambda: self._take(restart, force))
        problem = None
        if not ranks.is_root:
            problem = self._hold(fcntl.LOCK_SH)
        ranks.agree(problem)

    def _take(self, restart: bool, force: bool) -> None:
        self.check_free(restart, force)
        old = RunFolder(self.path)  # holds the lock of what is set aside until it is
        try:
            if force and self.path.exists() and any(self.path.iterdir()):
                if self.log_path.exists() and (refused := old._hold(fcntl.LOCK_EX)):
                    raise refused
                self.path.rename(free_name(self.path))
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self.segments.mkdir(exist_ok=True)
        except OSError as problem:
            raise InputError(f"{self.path}: cannot be made: {problem.strerror}") from None
        finally:
            old.release()
        refused = self._hold(fcntl.LOCK_EX)
        if not refused and not restart and self.case_path.exists():
            refused = self._in_use()  # by a run that came in between
        # Converting is not atomic: whoever loses the lock here must not try again.
        refused = refused or self._hold(fcntl.LOCK_SH, tries=1)
        if refused:
            self.release()
            raise refused

    def _hold(self, kind: int, tries: int = 5) -> InputError | None:
        """Lock `log.txt`, shared or exclusive; the error if somebody else has it."""
        try:
            self._log = self._log or self.log_path.open("a+", encoding="utf-8", buffering=1)
            for attempt in range(tries):
                if attempt:
                    time.sleep(0.05)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(self._log, kind | fcntl.LOCK_NB)
                    moved = not os.path.samestat(os.fstat(self._log.fileno()), self.log_path.stat())
                    return self._in_use() if moved else None
        except OSError as problem:
            if problem.errno in NO_LOCKS:
                return None
            return InputError(f"{self.log_path}: cannot be opened: {problem.strerror}")
        return self._in_use()

    def _in_use(self) -> InputError:
        return InputError(f"{self.path}: in use by a run that is still going")

    def release(self) -> None:
        """Let go of the folder."""
        if self._log:
            with contextlib.suppress(OSError):  # what could not be logged on a full disk
                self._log.close()
            self._log = None

    # ---- log and summary ----

    def log(self, rank: int, text: str) -> None:
        """Append lines with time and rank; a full disk must not hide the message itself."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        lines = "".join(f"{stamp} [rank {rank}] {line}\n" for line in text.splitlines())
        if self._log:
            with contextlib.suppress(OSError):
                self._log.write(lines)

    def old_figure(self, name: str) -> float | None:
        """A figure of the summary that an earlier call left in the folder."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            return float(json.loads((self.path / "summary.json").read_text())["figures"][name])
        return None

    def write_case(self, text: str) -> None:
        """Put the resolved case beside the results."""
        write_text(self.case_path, text)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Replace the summary."""
        write_text(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")


def free_name(path: Path) -> Path:
    """A free name beside a path for setting it aside: NAME.1, NAME.2, …"""
    number = 1
    while (name := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return name
