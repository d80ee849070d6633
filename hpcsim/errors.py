"""What can go wrong, and the exit code each kind ends with."""

from __future__ import annotations

FINISHED = 0
FAILED = 1
BAD_INPUT = 2
DIVERGED = 3
STOPPED = 75


class HpcsimError(Exception):
    """A foreseen problem, told to the user in one line per cause."""

    exit_code = FAILED

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        return type(self), self.lines


class InputError(HpcsimError):
    """The case, the command line or the folder asked for cannot be used."""

    exit_code = BAD_INPUT


class StorageError(HpcsimError):
    """A file could not be written or read: disk full, quota, read-only, damaged."""


def nearest(word: str, known: list[str], cutoff: float = 0.6) -> str:
    """The known name closest to a misspelt one, as a phrase; empty when none is close."""
    import difflib

    spelt = {name.lower(): name for name in reversed(known)}
    close = difflib.get_close_matches(word.lower(), list(spelt), n=1, cutoff=cutoff)
    return f"; did you mean {spelt[close[0]]}?" if close else ""
