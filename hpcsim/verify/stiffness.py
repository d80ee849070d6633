"""Stiffest modes of a rod in a fluid without viscosity, by kernels: what limits an explicit step.

Small motions of a straight rod obey r'' = −M K r, K the stiffness of its nodes, M what a force on
them does to the fluid's velocity there: spread, made solenoidal, divided by ρ, interpolated. With
stretching stiffness b alone, or bending stiffness a alone, and the width of a cell h,

    (2/ω)² = C_b ρ h^(d+1)/b,   (2/ω)² = C_a ρ h^(d+3)/a       d the number of axes

The smallest C of several places and directions of the rod counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcsim.coupling.immersion import Immersion, spin
from hpcsim.coupling.kernels import KERNELS
from hpcsim.coupling.limits import CONSTANTS, COUPLE_DILATED
from hpcsim.fluid.grid import Grid
from hpcsim.fluid.navier_stokes import NavierStokes
from hpcsim.fluid.operators import OPERATORS
from hpcsim.parallel.ranks import Ranks
from hpcsim.rod.rods import MECHANICS
from hpcsim.transform.fftw import Effort
from hpcsim.transform.slab import SlabTransform
from hpcsim.verify.study import Check, Context, Result

NODES, POINTS = 12, 24
#: Node spacing in cells of the kernel's dilation.
SPACINGS = (0.75, 1.0)


def constants(
    name: str, dim: int, bending: str, gradient: str = "indirect", dilation: int = 1
) -> tuple[float, float]:
    """C_a and C_b of a kernel."""
    ranks = Ranks.alone()
    n = POINTS * dilation
    grid = Grid((n,) * dim, (float(n),) * dim)
    operators = OPERATORS["centred"]
    transform = SlabTransform(grid.n, ranks, (dim,), False, Effort.ESTIMATE)
    flow = NavierStokes(grid, operators, transform, 1.0, 0.0)
    immersion = Immersion(
        grid,
        (0, n),
        ranks,
        NODES,
        KERNELS[name],
        (dilation,) * dim,
        gradient,  # type: ignore[arg-type]
    )
    found = []
    for direction in ((1.0, 0.0, 0.0), (1.0, 1.0, 1.0 if dim == 3 else 0.0)):
        for spacing in SPACINGS:
            for offset in (0.0, 0.5):
                r, frames = placed(np.array(direction), spacing * dilation, n / 2 + offset, dim)
                mobility = response(flow, immersion, r)
                h = spacing * dilation
                rates = [
                    fastest(mobility, stiffness_matrix(bending, r, frames, h, stretch, bend))
                    for stretch, bend in ((1.0, 0.0), (0.0, 1.0))
                ]
                found.append([4 / rate for rate in rates])
    stretched, bent = np.min(found, axis=0)
    return float(bent), float(stretched)


def placed(direction: np.ndarray, h: float, middle: float, dim: int) -> tuple[np.ndarray, ...]:
    """Places and frames of a straight rod through the middle of the box."""
    d1 = direction / np.linalg.norm(direction)
    d2 = np.cross([0, 0, 1.0], d1)
    d2 /= np.linalg.norm(d2)
    frames = np.broadcast_to(np.stack([d1, d2, np.cross(d1, d2)], axis=1), (NODES, 3, 3)).copy()
    r = middle + np.outer((np.arange(NODES) - NODES / 2) * h, d1)
    r[:, dim:] = 0.0
    return r, frames


def response(flow: NavierStokes, immersion: Immersion, r: np.ndarray) -> np.ndarray:
    """Velocity and spin at nodes for forces and couples on them, (6 n, 6 n), for density 1."""
    immersion.place(r)
    columns = []
    f = flow.transform.physical(flow.dim)
    for column in np.eye(6 * NODES):
        force, couple = column.reshape(2, NODES, 3)
        f[:] = 0.0
        immersion.spread(force, couple, 1.0, f)
        hat = flow.coefficients(f)
        flow.project(hat)
        velocity, gradient = immersion.interpolate(flow.velocity(hat))
        columns.append(np.concatenate([velocity.ravel(), spin(gradient).ravel()]))
    return np.array(columns).T


def stiffness_matrix(
    bending: str, r: np.ndarray, frames: np.ndarray, h: float, stretch: float, bend: float
) -> np.ndarray:
    """−∂(F, N)/∂(r, w) of a straight rod, (6 n, 6 n), by central differences."""
    mechanics = MECHANICS[bending]
    segments = NODES - 1
    entries = np.diag([stretch] * 3 + [bend] * 3)
    stiffness = np.broadcast_to(entries, (segments, 6, 6)).copy()
    lengths, rest, closing = np.full(segments, h), np.zeros((segments, 6)), np.zeros(3)
    strains, stresses = np.zeros((2, segments, 6))
    eps, columns = 1e-5, []
    for column in np.eye(6 * NODES):
        sides = []
        for side in (-eps, eps):
            way, turn = side * column.reshape(2, NODES, 3)
            moved, force, couple = np.zeros_like(frames), np.zeros_like(r), np.zeros_like(r)
            mechanics.follow(r + way, closing, segments, turn, frames, moved)
            mechanics.load(
                r + way,
                moved,
                lengths,
                closing,
                rest,
                stiffness,
                strains,
                stresses,
                force,
                couple,
            )
            sides.append(np.concatenate([force.ravel(), couple.ravel()]))
        columns.append((sides[0] - sides[1]) / (2 * eps))
    return np.array(columns).T


def fastest(mobility: np.ndarray, stiffness: np.ndarray) -> float:
    """Largest ω² of r'' = −M K r."""
    return float(np.abs(np.linalg.eigvals(mobility @ stiffness)).max())


def study(context: Context) -> Result:
    """Constants of all kernels, and of dilated ones, against those that runs take their dt from."""
    names = ("s4", "s3") if context.quick else tuple(KERNELS)
    rows: list[dict[str, Any]] = []
    checks = []
    for name in names:
        for bending in MECHANICS:
            for dim in (2, 3):
                found = constants(name, dim, bending)
                rows.append(
                    {
                        "kernel": name,
                        "bending": bending,
                        "dim": dim,
                        "C_a": found[0],
                        "C_b": found[1],
                    }
                )
                for label, value, stored in zip(
                    ("C_a", "C_b"), found, CONSTANTS[name][bending][dim], strict=True
                ):
                    # stored with three digits
                    title = f"{name} {bending} {dim}D: {label} / stored"
                    checks.append(Check(title, value / stored, 0.99, 1.01))
    for bending in MECHANICS:
        wide, plain = constants("s4", 2, bending, dilation=2)[0], CONSTANTS["s4"][bending][2][0]
        least = COUPLE_DILATED if bending == "couple" else 0.9
        title = f"s4 {bending} 2D, dilation 2: C_a / (2⁵ stored)"
        checks.append(Check(title, wide / (plain * 2**5), least, 1.2))

    def draw(figure: Any) -> None:
        for axes, label in zip(figure.subplots(1, 2), ("C_a", "C_b"), strict=True):
            for bending in MECHANICS:
                mine = [row for row in rows if (row["bending"], row["dim"]) == (bending, 3)]
                axes.semilogy([row[label] for row in mine], "o", label=f"bending by {bending}")
            axes.set_xticks(range(len(names)), names, rotation=60)
            axes.set(ylabel=label, title="3D")
            axes.legend()

    return Result(rows, checks, draw)
