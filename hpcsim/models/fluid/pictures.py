"""Pictures of a flow: a slice of the vorticity, its spectrum, its energy in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsim.errors import InputError

if TYPE_CHECKING:
    from hpcsim.output.run import Run


def draw_pictures(run: Run, figure: Any) -> None:
    """Three panels of the whole run."""
    panels = figure.subplots(1, 3)
    draw_slice(run, figure, panels[0], len(run["series/t"]) - 1)
    draw_spectrum(run, panels[1])
    draw_energy(run, panels[2])


def draw_frame(run: Run, figure: Any, frame: int) -> None:
    """One frame of a movie: the slice."""
    if not {"fluid/u", "fluid/vorticity"} & set(run):
        raise InputError(f"{run.folder}: a movie shows vorticity: output.fields needs it, or u")
    draw_slice(run, figure, figure.subplots(), frame)


def vorticity_slice(run: Run, frame: int) -> np.ndarray | None:
    """Vorticity about z in the middle plane of a frame, (x, y); None if no field tells it."""
    x, y = run["fluid/x"][:], run["fluid/y"][:]
    if "fluid/vorticity" in run:
        w = run["fluid/vorticity"]
        return w[frame] if w.ndim == 3 else w[frame, 2, :, :, w.shape[-1] // 2]
    if "fluid/u" not in run:
        return None
    u = run["fluid/u"]
    plane = u[frame] if u.ndim == 4 else u[frame, :, :, :, u.shape[-1] // 2]

    def slope(values: np.ndarray, points: np.ndarray, axis: int) -> np.ndarray:
        length = run.case["fluid"]["box"][axis]
        gaps = (np.roll(points, -1) - np.roll(points, 1)) % length
        gaps = gaps if len(points) > 2 else gaps + length  # both neighbours are the same point
        change = np.roll(values, -1, axis) - np.roll(values, 1, axis)
        return change / (gaps[:, None] if axis == 0 else gaps)

    return slope(plane[1], x, 0) - slope(plane[0], y, 1)


def draw_slice(run: Run, figure: Any, axes: Any, frame: int) -> None:
    """Vorticity about z, red and blue."""
    w = vorticity_slice(run, frame)
    plane = ""
    if "fluid/z" in run:
        z = run["fluid/z"][:]
        plane = f" about z, at z = {z[len(z) // 2]:.3g} m"
    axes.set_title(f"vorticity{plane}, t = {run['series/t'][frame]:.4g} s", fontsize=10)
    if w is None:
        axes.text(0.5, 0.5, "output.fields has neither vorticity nor u", ha="center")
        axes.set_axis_off()
        return
    largest = float(np.abs(w).max()) or 1.0
    x, y = run["fluid/x"][:], run["fluid/y"][:]
    extent = (x[0], x[-1] + x[1] - x[0], y[0], y[-1] + y[1] - y[0])
    image = axes.imshow(
        w.T, origin="lower", extent=extent, cmap="RdBu_r", vmin=-largest, vmax=largest
    )
    axes.set(xlabel="x [m]", ylabel="y [m]")
    figure.colorbar(image, ax=axes, label="vorticity [1/s]", shrink=0.85)


def draw_spectrum(run: Run, axes: Any) -> None:
    """Energy by wavenumber at the first and the last frame."""
    k, energy, t = run["fluid/k"][:], run["fluid/spectrum"], run["series/t"]
    for frame, style in ((0, "--"), (len(t) - 1, "-")):
        values = energy[frame]
        shown = (k > 0) & (values > 1e-20 * max(values.max(), 1e-300))
        label = f"t = {t[frame]:.4g} s"
        axes.loglog(k[shown], values[shown], style, marker=".", markersize=3, label=label)
    axes.set(xlabel="wavenumber [1/m]", ylabel="energy per shell [m²/s²]")
    axes.xaxis.set_minor_formatter("")  # they overlap where k spans about a decade
    axes.set_title("spectrum", fontsize=10)
    if axes.lines:
        axes.legend(fontsize=8)


def draw_energy(run: Run, axes: Any) -> None:
    """Kinetic energy and dissipation in time."""
    t = run["series/t"][:]
    marker = "o" if len(t) == 1 else ""
    axes.plot(t, run["series/kinetic_energy"][:], color="C0", marker=marker)
    axes.set_xlabel("t [s]")
    axes.set_ylabel("kinetic energy [J]", color="C0")
    axes.set_ylim(bottom=0)
    other = axes.twinx()
    other.plot(t, run["series/dissipation"][:], "--", color="C3", marker=marker)
    other.set_ylabel("dissipation [W]", color="C3")
    other.set_ylim(bottom=0)
    axes.set_title("energy", fontsize=10)
