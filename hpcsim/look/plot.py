"""`hpcsim plot`: a picture file of a run, drawn by its model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpcsim import models
from hpcsim.errors import InputError, StorageError
from hpcsim.output.run import Run


def draw(folder: Path, out: Path | None = None) -> Path:
    """Draw a run into a picture file (its ending tells the format); the file."""
    run = Run(folder)
    if "series/t" not in run or len(run["series/t"]) == 0:
        raise InputError(f"{folder}: holds no frames yet, so there is nothing to draw")
    model = models.load(run.summary["model"])
    title = run.case["case"].get("title") or run.case["case"]["name"]
    return save_figure(
        lambda figure: model.draw_pictures(run, figure),
        f"{title}   ({run.summary['status']}, t = {run['series/t'][-1]:g} s)",
        out or folder / "plot.png",
    )


def save_figure(draw_in: Callable[[Any], None], title: str, out: Path) -> Path:
    """Draw into a new figure and write it to a file (its ending tells the format)."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'hpcsim[look]'") from None
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if out.suffix.lstrip(".").lower() not in known:
        raise InputError(f"{out}: unknown picture format; allowed: {', '.join(sorted(known))}")
    draw_in(figure)
    figure.suptitle(title, fontsize=11)
    try:
        figure.savefig(out, dpi=150)
    except OSError as problem:
        raise StorageError(f"{out}: cannot be written: {problem.strerror}") from None
    return out
