"""`hpcsim plot`: a picture file of a run, drawn by its model."""

from __future__ import annotations

from pathlib import Path

from hpcsim import models
from hpcsim.errors import InputError, StorageError
from hpcsim.output.run import Run


def draw(folder: Path, out: Path | None = None) -> Path:
    """Draw a run into a picture file (its ending tells the format); the file."""
    run = Run(folder)
    out = out or folder / "plot.png"
    try:
        import matplotlib
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'hpcsim[look]'") from None
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    if "series/t" not in run or len(run["series/t"]) == 0:
        raise InputError(f"{folder}: holds no frames yet, so there is nothing to draw")
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    models.load(run.summary["model"]).draw_pictures(run, figure)
    title = run.case["case"].get("title") or run.case["case"]["name"]
    figure.suptitle(
        f"{title}   ({run.summary['status']}, t = {run['series/t'][-1]:g} s)", fontsize=11
    )
    known = figure.canvas.get_supported_filetypes()
    if out.suffix.lstrip(".").lower() not in known:
        raise InputError(f"{out}: unknown picture format; allowed: {', '.join(sorted(known))}")
    try:
        figure.savefig(out, dpi=150)
    except OSError as problem:
        raise StorageError(f"{out}: cannot be written: {problem.strerror}") from None
    return out
