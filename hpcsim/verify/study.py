"""`hpcsim verify`: runs studies, compares what they find with theory, keeps it in files."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsim.errors import FAILED, FINISHED, InputError, nearest
from hpcsim.output.hdf5 import storage, write_text
from hpcsim.verify import STUDIES

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks
    from hpcsim.terminal import Terminal


@dataclass(frozen=True)
class Check:
    """A number that a study found, and the bounds that it must lie in."""

    name: str
    value: float
    least: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether the number lies in its bounds."""
        return self.least <= self.value <= self.most


@dataclass(frozen=True)
class Context:
    """What a study is given: the ranks, whether to be short, and a folder for its runs."""

    ranks: Ranks
    quick: bool
    folder: Path


@dataclass(frozen=True)
class Result:
    """Rows of a table, checks, figures to cite, and a picture of it all."""

    rows: list[dict[str, Any]]
    checks: list[Check]
    draw: Callable[[Any], None]
    figures: dict[str, float] = field(default_factory=dict)


Study = Callable[[Context], Result]


def load(name: str) -> Study:
    """The function of a study."""
    module, _, function = STUDIES[name][1].partition(":")
    found: Study = getattr(importlib.import_module(module), function)
    return found


def verify(
    names: Sequence[str], quick: bool, folder: Path, ranks: Ranks, terminal: Terminal
) -> int:
    """Run studies on all ranks; tables (JSON) and pictures go to the folder; the exit code."""
    for name in names:
        if name not in STUDIES:
            hint = nearest(name, list(STUDIES))
            raise InputError(f"verify {name}: unknown{hint} (there are: {', '.join(STUDIES)})")
    if ranks.is_root:
        with storage(folder):
            folder.mkdir(parents=True, exist_ok=True)
    ranks.barrier()
    failed = []
    for name in names or STUDIES:
        terminal.say(f"{name}: {STUDIES[name][0]}")
        result = load(name)(Context(ranks, quick, folder))
        for line in table(result.rows):
            terminal.say(f"  {line}")
        for check in result.checks:
            state = "holds" if check.holds else "FAILS"
            bounds = f"[{check.least:.6g}, {check.most:.6g}]"
            terminal.say(f"  {check.name:<50} {check.value:>11.5g} in {bounds}: {state}")
        ranks.on_root(partial(keep, name, result, quick, folder))
        terminal.say(f"  {folder / name}.json, {folder / name}.png")
        failed += [name for check in result.checks if not check.holds][:1]
    if failed:
        terminal.say(f"not as expected: {', '.join(failed)}")
    return FAILED if failed else FINISHED


def keep(name: str, result: Result, quick: bool, folder: Path) -> None:
    """Write NAME.json and NAME.png."""
    from hpcsim.look.plot import save_figure

    checks = [asdict(check) | {"holds": check.holds} for check in result.checks]
    facts = {
        "study": name,
        "title": STUDIES[name][0],
        "quick": quick,
        "figures": result.figures,
        "checks": checks,
        "rows": result.rows,
    }
    with storage(folder / name):
        write_text(folder / f"{name}.json", json.dumps(facts, indent=2) + "\n")
    save_figure(result.draw, STUDIES[name][0], folder / f"{name}.png")


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows of equal keys as lines of text with a head."""
    cells = [list(rows[0]), *([written(value) for value in row.values()] for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]


def written(value: Any) -> str:
    """A cell of a table."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
