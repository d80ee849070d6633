"""`hpcsim movie`: the frames of a run as an animation, each drawn by its model."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hpcsim import models
from hpcsim.errors import InputError, StorageError
from hpcsim.output.hdf5 import rename_synced, storage
from hpcsim.output.run import Run

MOST_FRAMES = 200
SECONDS = 8  # how long a movie lasts, within the limits of its speed
SLOWEST, FASTEST = 10, 25  # frames per second
SIZE_INCHES, DOTS_PER_INCH = (9.0, 5.0), 100


def animate(folder: Path, out: Path | None = None) -> Path:
    """Draw the frames of a run into a movie file (its ending tells the format); the file."""
    run = Run(folder)
    out = out or folder / ("movie.mp4" if find_ffmpeg() else "movie.gif")
    write = WRITERS.get(out.suffix.lower())
    if write is None:
        raise InputError(f"{out}: unknown movie format; allowed: {', '.join(WRITERS)}")
    if write is write_mp4 and not find_ffmpeg():
        raise InputError(
            f"{out}: an mp4 needs ffmpeg, which is not on the PATH; "
            "install it, or use a name that ends in .gif"
        )
    model = models.load(run.summary["model"])
    if not hasattr(model, "draw_frame"):
        raise InputError(f"{folder}: model {run.summary['model']} has no movie")
    if "series/t" not in run or len(run["series/t"]) == 0:
        raise InputError(f"{folder}: holds no frames yet, so there is nothing to draw")
    frames = chosen(len(run["series/t"]))
    speed = min(max(round(frames.size / SECONDS), SLOWEST), FASTEST)
    aside = out.with_name(out.name + ".part")
    try:
        with storage(out):
            aside.touch()
        write(aside, pictures(run, model, frames), speed)
        with storage(out):
            rename_synced(aside, out)
    finally:
        aside.unlink(missing_ok=True)
    return out


def chosen(total: int) -> np.ndarray:
    """Numbers of the frames to draw: all, or MOST_FRAMES of them from the first to the last."""
    return np.linspace(0, total - 1, min(total, MOST_FRAMES)).round().astype(int)


def pictures(run: Run, model: Any, frames: np.ndarray) -> Iterator[np.ndarray]:
    """The frames as pixels (row, column, RGBA), one after the other."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("movies need matplotlib: pip install 'hpcsim[look]'") from None
    matplotlib.use("Agg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from tqdm import tqdm

    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    title = run.case["case"].get("title") or run.case["case"]["name"]
    times = run["series/t"][:]
    live = sys.stdout.isatty()
    for frame in tqdm(frames, disable=not live, file=sys.stdout, unit="frame", leave=False):
        figure.clear()
        model.draw_frame(run, figure, int(frame))
        figure.suptitle(f"{title}   (t = {times[frame]:.4g} s)", fontsize=11)
        canvas.draw()
        yield np.array(canvas.buffer_rgba())


# ---- formats ----


def write_gif(path: Path, frames: Iterator[np.ndarray], speed: int) -> None:
    """An animated GIF, by the library that matplotlib brings along."""
    from PIL import Image

    images = (Image.fromarray(frame).convert("RGB") for frame in frames)
    with path.open("wb") as file:
        next(images).save(
            file,
            format="GIF",
            save_all=True,
            append_images=images,
            duration=1000 / speed,  # ms of each
            loop=0,
        )


def write_mp4(path: Path, frames: Iterator[np.ndarray], speed: int) -> None:
    """A video by ffmpeg, which gets one frame after the other through a pipe."""
    first = next(frames)
    height, width, _ = first.shape
    command = [
        *(find_ffmpeg() or "ffmpeg", "-y", "-loglevel", "error"),
        *("-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{width}x{height}", "-r", str(speed)),
        *("-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2"),  # the codec wants even sizes
        *("-pix_fmt", "yuv420p", "-f", "mp4", str(path)),
    ]
    with tempfile.TemporaryFile() as said:
        with (
            contextlib.suppress(BrokenPipeError),  # ffmpeg has ended by itself and says why
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said) as ffmpeg,
        ):
            assert ffmpeg.stdin is not None
            for frame in itertools.chain([first], frames):
                ffmpeg.stdin.write(frame.tobytes())
        said.seek(0)
        lines = said.read().decode(errors="replace").split("\n")
    if ffmpeg.returncode:
        reason = next((line for line in reversed(lines) if line.strip()), "no reason given")
        raise StorageError(f"{path.with_suffix('')}: ffmpeg cannot write it: {reason.strip()}")


def find_ffmpeg() -> str | None:
    """The ffmpeg on the PATH, if there is one."""
    return shutil.which("ffmpeg")


#: ending of a movie file → how it is written
WRITERS = {".mp4": write_mp4, ".gif": write_gif}
