"""Spreading from the nodes of a rod to the grid, and interpolation back: exact adjoints.

    spread        f_a(x) = Σ_k [F_ka δ(x − r_k) + ½ ε_abc N_kc ∂_b δ(x − r_k)]
    interpolate   U_k = Σ_x u δ(x − r_k) w,   ∇U_k its gradient,   W_k = ½ ∇ × u the same way
    so that       Σ_x w f·u = Σ_k (F_k·U_k + N_k·W_k),   w the volume of a cell

δ is the product of kernels over the axes, divided by w. Its gradient is the derivative of the
kernel (`direct`) or the central difference of its weights over 2h (`indirect`). Each rank spreads
to, and interpolates from, its own planes only; one sum over the ranks joins what they found.
Rods live in space: in a plane flow z, the normal force and couples in the plane are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from hpcsim.compiled import kernel
from hpcsim.coupling.kernels import Kernel, value_and_slope
from hpcsim.fluid.grid import Grid

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False


class Immersion:
    """Weights of some nodes on this rank's planes of a grid; arrays are made once."""

    def __init__(
        self,
        grid: Grid,
        planes: tuple[int, int],
        ranks: Ranks,
        nodes: int,
        kernel: Kernel,
        dilation: Sequence[int],
        gradient: Literal["indirect", "direct"] = "indirect",
    ) -> None:
        self.grid, self.ranks = grid, ranks
        self._start = planes[0]
        self._indirect = gradient == "indirect"
        self._table = kernel.table
        # by axis of fields, the middle one of a plane flow has one point and belongs to no x, y
        self._coordinate = np.array([0, -1, 1] if grid.dim == 2 else [0, 1, 2])
        self._n, self._dilation = np.ones(3, np.int64), np.ones(3, np.int64)
        self._inverse_spacing = np.zeros(3)
        self._n[list(grid.axes)] = grid.n
        self._dilation[list(grid.axes)] = dilation
        self._inverse_spacing[list(grid.axes)] = 1 / np.array(grid.spacing)
        #: Points below the weights of each axis; differences reach one point further.
        self._reach = self._dilation * kernel.width + 2 * self._indirect
        self._reach[self._coordinate < 0] = 1
        self._first = np.zeros((nodes, 3), np.int64)
        self._weights = np.zeros((nodes, 2, 3, self._reach.max()))
        #: Velocity [m/s] and its gradient ∂_b u_a [1/s], (node, a, 1 + b), of the latest call.
        self._found = np.zeros((nodes, 3, 4))

    def place(self, r: np.ndarray) -> None:
        """Compute the weights of nodes at r, (node, 3) [m]."""
        place(
            r,
            self._coordinate,
            self._inverse_spacing,
            self._table,
            self._dilation,
            self._indirect,
            self._reach,
            self._first,
            self._weights,
        )

    def spread(
        self, force: np.ndarray, couple: np.ndarray, factor: float, field: np.ndarray
    ) -> None:
        """Add the density of factor × (forces [N], couples [N m]), (node, 3), to a vector field."""
        per_volume = factor * self._inverse_spacing[list(self.grid.axes)].prod()
        spread(
            force,
            couple,
            per_volume,
            self._n,
            self._start,
            self._reach,
            self._first,
            self._weights,
            field,
        )

    def interpolate(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """U (node, 3) and ∇U (node, 3, 3), ∂_b u_a at [a, b], of a vector field; on all ranks."""
        self.find(u, self._found)
        return split(self.ranks.total(self._found))

    def find(self, u: np.ndarray, found: np.ndarray) -> None:
        """This rank's part of (u_a, ∂_b u_a) at the nodes, (node, a, 1 + b)."""
        interpolate(u, self._n, self._start, self._reach, self._first, self._weights, found)


class Immersions:
    """The weights of several rods, (nodes, weights) of each: one exchange for all of them."""

    def __init__(self, parts: Sequence[tuple[slice, Immersion]], ranks: Ranks) -> None:
        self._parts, self._ranks = tuple(parts), ranks
        self._found = np.zeros((self._parts[-1][0].stop, 3, 4))

    def place(self, r: np.ndarray) -> None:
        """Compute the weights of all nodes at r, (node, 3) [m]."""
        for nodes, immersion in self._parts:
            immersion.place(r[nodes])

    def spread(
        self, force: np.ndarray, couple: np.ndarray, factor: float, field: np.ndarray
    ) -> None:
        """Add the density of factor × (forces [N], couples [N m]), (node, 3), to a vector field."""
        for nodes, immersion in self._parts:
            immersion.spread(force[nodes], couple[nodes], factor, field)

    def interpolate(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """U (node, 3) and ∇U (node, 3, 3), ∂_b u_a at [a, b], of a vector field; on all ranks."""
        for nodes, immersion in self._parts:
            immersion.find(u, self._found[nodes])
        return split(self._ranks.total(self._found))


def split(found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocity (node, 3) and its gradient (node, 3, 3)."""
    return found[:, :, 0], found[:, :, 1:]


def spin(gradient: np.ndarray) -> np.ndarray:
    """W = ½ ∇ × u from ∂_b u_a at [a, b]: (…, 3, 3) → (…, 3)."""
    turned = gradient[..., [2, 0, 1], [1, 2, 0]] - gradient[..., [1, 2, 0], [2, 0, 1]]
    return 0.5 * turned


@kernel
def place(r, coordinate, inverse_spacing, table, dilation, indirect, reach, first, weights):
    """Weights and their gradients, (node, 2, axis, point), from point `first` (node, axis) on."""
    width = round(2.0 * table[len(table) - 3, 0])
    for k in range(len(r)):
        for axis in range(3):
            plain, slopes = weights[k, 0, axis], weights[k, 1, axis]
            if coordinate[axis] < 0:
                plain[0] = 1.0
                continue
            c, h = dilation[axis], inverse_spacing[axis]
            inside = c * width
            place = r[k, coordinate[axis]] * h
            start = int(np.floor(place - 0.5 * inside)) + 1
            margin = 1 if indirect else 0
            first[k, axis] = start - margin
            plain[:], slopes[:] = 0.0, 0.0
            for i in range(inside):
                value, slope = value_and_slope(table, (place - (start + i)) / c)
                plain[i + margin] = value / c
                slopes[i + margin] = slope * h / (c * c)
            if indirect:
                for i in range(reach[axis]):
                    before = plain[i - 1] if i > 0 else 0.0
                    after = plain[i + 1] if i < reach[axis] - 1 else 0.0
                    slopes[i] = 0.5 * (before - after) * h


@kernel
def spread(force, couple, per_volume, n, start, reach, first, weights, field):
    """f += Σ_k F δ + ½ ∇ × (N δ) on the planes of a field (component, x, y, z)."""
    components, count = field.shape[:2]
    for k in range(len(force)):
        wx, wy, wz = weights[k, 0]
        dx, dy, dz = weights[k, 1]
        fx, fy, fz = per_volume * force[k, 0], per_volume * force[k, 1], per_volume * force[k, 2]
        half = 0.5 * per_volume
        nx, ny, nz = half * couple[k, 0], half * couple[k, 1], half * couple[k, 2]
        for i in range(reach[0]):
            x = (first[k, 0] + i) % n[0] - start
            if x < 0 or x >= count:
                continue
            for j in range(reach[1]):
                y = (first[k, 1] + j) % n[1]
                both, ahead, aside = wx[i] * wy[j], dx[i] * wy[j], wx[i] * dy[j]
                if components == 3:
                    a0, b0 = fx * both - nz * aside, ny * both
                    a1, b1 = fy * both + nz * ahead, -nx * both
                    a2 = fz * both - ny * ahead + nx * aside
                    for m in range(reach[2]):
                        z = (first[k, 2] + m) % n[2]
                        field[0, x, y, z] += a0 * wz[m] + b0 * dz[m]
                        field[1, x, y, z] += a1 * wz[m] + b1 * dz[m]
                        field[2, x, y, z] += a2 * wz[m]
                else:
                    a0, b0, a1 = fx * both, -nz * both, fy * both + nz * ahead
                    for m in range(reach[2]):
                        z = (first[k, 2] + m) % n[2]
                        field[0, x, y, z] += a0 * wz[m] + b0 * dz[m]
                        field[1, x, y, z] += a1 * wz[m]


@kernel
def interpolate(field, n, start, reach, first, weights, found):
    """(u_a, ∂_b u_a) at the nodes from the planes of this rank, (node, a, 1 + b)."""
    components, count = field.shape[:2]
    found[:] = 0.0
    for k in range(len(first)):
        wx, wy, wz = weights[k, 0]
        dx, dy, dz = weights[k, 1]
        for i in range(reach[0]):
            x = (first[k, 0] + i) % n[0] - start
            if x < 0 or x >= count:
                continue
            for j in range(reach[1]):
                y = (first[k, 1] + j) % n[1]
                for a in range(components):
                    plain, slope = 0.0, 0.0
                    for m in range(reach[2]):
                        z = (first[k, 2] + m) % n[2]
                        plain += wz[m] * field[a, x, y, z]
                        slope += dz[m] * field[a, x, y, z]
                    found[k, a, 0] += wx[i] * wy[j] * plain
                    found[k, a, 1] += dx[i] * wy[j] * plain
                    if components == 3:
                        found[k, a, 2] += wx[i] * dy[j] * plain
                    found[k, a, components] += wx[i] * wy[j] * slope
