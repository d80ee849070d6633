"""`hpcsim bench`: runs the measurements of scripts/bench and compares them with their limits.

A measurement is a Python file with a function `measure()` that gives figures; all of them are
taken in one run on one machine, the best of several, so that their ratios mean something.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hpcsim.errors import FINISHED, InputError, nearest
from hpcsim.parallel.launcher import mpirun_environment

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks


@dataclass(frozen=True)
class Figure:
    """A measured number and the limit it must keep; `most`: the limit is an upper one.

    A number that could not be measured has no value, and the note says what it takes.
    """

    name: str
    value: float | None
    unit: str
    limit: float | None = None
    most: bool = True
    note: str = ""

    @classmethod
    def missing(cls, name: str, note: str) -> Figure:
        """A number that cannot be measured here."""
        return cls(name, None, "", note=note)

    @property
    def kept(self) -> bool:
        """Whether the number keeps its limit."""
        if self.limit is None or self.value is None:
            return True
        return self.value <= self.limit if self.most else self.value >= self.limit


def best(
    works: Sequence[Callable[[], object]], ranks: Ranks, repeats: int = 9, in_a_row: int = 3
) -> list[float]:
    """Shortest wall time of each work [s], taken in turns so that all see the same machine.

    Each is done several times in a row, so that it finds the caches as it leaves them.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            for _ in range(in_a_row):
                ranks.barrier()
                before = time.perf_counter()
                work()
                found.append(ranks.vote(time.perf_counter() - before)[0])
    return [min(found) for found in times]


def launched(file: str, ranks: int, *arguments: object) -> Any:
    """What a measurement, started as a program on so many ranks, prints as JSON."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", sys.executable, file]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env=mpirun_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def folder() -> Path:
    """Where the measurements are: in the clone, or beside the installed package."""
    package = Path(__file__).parent
    clone = package.parent / "scripts" / "bench"
    return clone if clone.is_dir() else package / "_bench"


def available() -> dict[str, Path]:
    """The measurements, by name; a name that begins with _ is what they share."""
    return {path.stem: path for path in sorted(folder().glob("*.py")) if path.stem[0] != "_"}


def load(path: Path) -> ModuleType:
    """A measurement as a module."""
    spec = importlib.util.spec_from_file_location(f"hpcsim_bench_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # as if it were started as a program
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measure(names: Sequence[str], as_json: bool) -> int:
    """Take the named measurements, or all, and print them."""
    known = available()
    for name in names:
        if name not in known:
            hint = nearest(name, list(known))
            raise InputError(f"bench {name}: unknown{hint} (there are: {', '.join(known)})")
    results = {name: load(known[name]).measure() for name in names or known}
    if as_json:
        rows = {
            name: [asdict(figure) | {"kept": figure.kept} for figure in figures]
            for name, figures in results.items()
        }
        print(json.dumps(rows, indent=2))
        return FINISHED
    for name, figures in results.items():
        print(f"{name}:")
        for figure in figures:
            print(f"  {figure.name:<58} {written(figure)}")
    return FINISHED


def written(figure: Figure) -> str:
    """Value, unit and limit of a figure, or why it has none."""
    if figure.value is None:
        return f"not measured: {figure.note}"
    limit = ""
    if figure.limit is not None:
        sign = "<=" if figure.most else ">="
        limit = f"({sign} {figure.limit:g}: {'kept' if figure.kept else 'MISSED'})"
    return f"{figure.value:>10.4g} {figure.unit:<6} {limit}".rstrip()
