"""Pictures of rods in a flow: the rod with its directors, energy, curvature."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsim.models.fluid.pictures import draw_slice

if TYPE_CHECKING:
    from hpcsim.output.run import Run


def draw_pictures(run: Run, figure: Any) -> None:
    """Three panels: the rod at the end, energies in time, curvature along the rod."""
    deep = run["rod/r"].shape[2] == 3
    grid = figure.add_gridspec(1, 3)
    axes = figure.add_subplot(grid[0], projection="3d" if deep else None)
    draw_rod(run, figure, axes, len(run["rod/t"]) - 1)
    draw_energies(run, figure.add_subplot(grid[1]))
    draw_curvature(run, figure.add_subplot(grid[2]))


def draw_frame(run: Run, figure: Any, frame: int) -> None:
    """One frame of a movie: the rod."""
    deep = run["rod/r"].shape[2] == 3
    draw_rod(run, figure, figure.add_subplot(projection="3d" if deep else None), frame)


def pieces(run: Run) -> list[slice]:
    """Nodes of each rod."""
    starts = [*run["rod/start"][:], run["rod/r"].shape[1]]
    return [slice(int(a), int(b)) for a, b in pairwise(starts)]


def draw_rod(run: Run, figure: Any, axes: Any, frame: int) -> None:
    """Centre lines, with d2 as short strokes; in 2D over the vorticity."""
    r, frames = run["rod/r"][frame], run["rod/R"][frame]
    deep = r.shape[1] == 3
    if not deep:
        draw_slice(run, figure, axes, frame)
    stroke = 0.04 * np.ptp(run["rod/s"][:])
    for nodes in pieces(run):
        axes.plot(*r[nodes].T, color="k", lw=1.5)
        if deep:
            ends = r[nodes] + stroke * frames[nodes, :, 1]
            for a, b in zip(r[nodes], ends, strict=True):
                axes.plot(*np.stack([a, b], axis=1), color="C1", lw=0.8)
    axes.set_aspect("equal")
    if deep:
        axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
        axes.set_title(f"rod and d2, t = {run['rod/t'][frame]:.4g} s", fontsize=10)


def draw_energies(run: Run, axes: Any) -> None:
    """Elastic and kinetic energy in time."""
    t = run["series/t"][:]
    for name in ("elastic_energy", "kinetic_energy"):
        axes.plot(t, run[f"series/{name}"][:], label=name.replace("_", " "))
    axes.set(xlabel="t [s]", ylabel="energy [J]")
    axes.set_title("energy", fontsize=10)
    axes.legend(fontsize=8)


def draw_curvature(run: Run, axes: Any) -> None:
    """Twist and bending along the first rod at the end, and what is prescribed."""
    found, wanted = (run[f"rod/{name}"][-1] for name in ("curvature", "curvature_prescribed"))
    names = ("twist", "bending about d2", "bending about d3") if found.ndim == 2 else ("bending",)
    nodes = pieces(run)[0]
    s = run["rod/s"][nodes]
    for column, name in enumerate(names):
        values, rest = (
            (part[:, column] if part.ndim == 2 else part)[nodes] for part in (found, wanted)
        )
        (line,) = axes.plot(s, values, label=name)
        axes.plot(s, rest, "--", color=line.get_color(), lw=0.8)
    axes.set(xlabel="s [m]", ylabel="curvature [1/m]")
    axes.set_title("curvature; dashed: at rest", fontsize=10)
    axes.legend(fontsize=8)
