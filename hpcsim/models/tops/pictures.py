"""Pictures of an ensemble of tops: axis on the sphere, nutation in time, drift over the members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsim.errors import InputError
from hpcsim.models.tops.nutation import READ_AT_ONCE, axis

if TYPE_CHECKING:
    from hpcsim.output.run import LazyArray, Run

SHOWN = 5
BELOW = {
    "fontsize": 8,
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.13),
    "ncol": 3,
    "frameon": False,
}


def draw_pictures(run: Run, figure: Any) -> None:
    """Three panels; a few members, evenly chosen, stand for the ensemble."""
    if "ensemble/state" not in run:
        raise InputError(f"{run.folder}: its frames hold no state (output.fields), nothing to draw")
    t = run["ensemble/t"][:]
    members = run["ensemble/state"].shape[1]
    chosen = np.unique(np.linspace(0, members - 1, SHOWN).round().astype(int))
    directions = axis(run["ensemble/state"][:, chosen])
    colours = [f"C{index}" for index in range(len(chosen))]
    sphere(figure.add_subplot(1, 3, 1, projection="3d"), directions, colours)
    nutation(figure.add_subplot(1, 3, 2), t, directions, chosen, colours)
    drifts(figure.add_subplot(1, 3, 3), run)


def sphere(axes: Any, directions: np.ndarray, colours: list[str]) -> None:
    """Path of the tip of the axis on the unit sphere."""
    longitude, latitude = np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13)
    x = np.outer(np.cos(longitude), np.sin(latitude))
    y = np.outer(np.sin(longitude), np.sin(latitude))
    z = np.outer(np.ones_like(longitude), np.cos(latitude))
    axes.plot_wireframe(x, y, z, color="0.85", linewidth=0.5)
    for index, colour in enumerate(colours):
        axes.plot(*directions[:, index].T, color=colour, linewidth=1.2)
    axes.set_box_aspect((1, 1, 1), zoom=1.3)
    axes.set_axis_off()
    axes.view_init(elev=35)
    axes.set_title("axis of the top", fontsize=10)


def nutation(
    axes: Any, t: np.ndarray, directions: np.ndarray, chosen: np.ndarray, colours: list[str]
) -> None:
    """Tilt of the axis in time."""
    for index, colour in enumerate(colours):
        tilt = np.degrees(np.arccos(np.clip(directions[:, index, 2], -1, 1)))
        axes.plot(t, tilt, color=colour, linewidth=1.2, label=f"member {chosen[index]}")
    axes.set(xlabel="t [s]", ylabel="tilt [degrees]")
    axes.set_title("nutation", fontsize=10)
    axes.legend(**BELOW)


def drifts(axes: Any, run: Run) -> None:
    """Largest change of each invariant over the run, member by member, relative to its size."""
    for name, array in sorted(run.ensemble.items()):
        if name.startswith("invariants/"):
            change, size = largest_change(array)
            drift = change / np.where(size > 0, size, 1.0)
            label = name.removeprefix("invariants/").replace("lz", "$L_z$")
            label += "" if drift.any() else " (exactly 0)"
            axes.plot(np.where(drift > 0, drift, np.nan), ".", markersize=3, label=label)
    axes.set(xlabel="member", ylabel="largest relative change", yscale="log")
    axes.set_title("drift of the invariants", fontsize=10)
    if axes.lines:
        axes.legend(**BELOW)


def largest_change(array: LazyArray) -> tuple[np.ndarray, np.ndarray]:
    """Per member, the largest distance from the first frame and the largest magnitude."""
    first = array[0]
    change, size = np.zeros_like(first), np.abs(first)
    step = max(1, READ_AT_ONCE // max(1, len(first)))
    for start in range(0, len(array), step):
        values = array[start : start + step]
        np.maximum(change, np.abs(values - first).max(axis=0), out=change)
        np.maximum(size, np.abs(values).max(axis=0), out=size)
    return change, size
