"""A periodic grid of two or three axes and the symbols of its operators.

Kernels see three axes always: the middle one of a plane flow has a single point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hpcsim.fluid.operators import Operators


class Transform(Protocol):
    """What the fluid needs of a distributed transform; see `transform.slab`."""

    shape: tuple[int, int, int]
    points: int
    start: int
    count: int
    modes: tuple[np.ndarray, np.ndarray, np.ndarray]

    def physical(self, components: int, halo: int = 0) -> np.ndarray:
        """A new physical array, zero."""
        ...

    def spectral(self, components: int) -> np.ndarray:
        """A new spectral array, zero."""
        ...

    def halo(self, width: int) -> Halo:
        """Planes of the neighbours around physical arrays."""
        ...

    def forward(self, physical: np.ndarray, spectral: np.ndarray) -> None:
        """Plain sum over the points."""
        ...

    def backward(self, spectral: np.ndarray, physical: np.ndarray) -> None:
        """Plain sum over the modes."""
        ...


class Halo(Protocol):
    """Planes of the neighbours; see `parallel.halo`."""

    def fill(self, field: np.ndarray) -> None:
        """Copy them from their owners."""
        ...


@dataclass(frozen=True)
class Grid:
    """n points per axis in a box of these lengths [m]; point i of an axis is at i h."""

    n: tuple[int, ...]
    box: tuple[float, ...]

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.n)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of three-axis arrays that the components belong to."""
        return (0, 2) if self.dim == 2 else (0, 1, 2)

    @property
    def spacing(self) -> tuple[float, ...]:
        """h of each axis [m]."""
        return tuple(length / n for length, n in zip(self.box, self.n, strict=True))

    @property
    def volume(self) -> float:
        """Volume of the box [m³; 2D: m²]."""
        return float(np.prod(self.box))

    def coordinates(self, start: int, count: int) -> list[np.ndarray]:
        """x, y[, z] of some planes, each shaped to broadcast over a three-axis field."""
        found = []
        for axis, n, h in zip(self.axes, self.n, self.spacing, strict=True):
            points = np.arange(start, start + count) if axis == 0 else np.arange(n)
            shape = [1, 1, 1]
            shape[axis] = len(points)
            found.append((points * h).reshape(shape))
        return found

    def view(self, field: np.ndarray) -> np.ndarray:
        """A field (…, x, y, z) with the axes of the grid only."""
        return field[..., 0, :] if self.dim == 2 else field


class Symbols:
    """Symbols of the operators at this rank's modes, one array per axis; z as (re, im) pairs.

    Kernels work on complex arrays seen as real ones, so what belongs to the last axis is repeated.
    """

    def __init__(self, grid: Grid, operators: Operators, modes: Sequence[np.ndarray]) -> None:
        self.gradient = [np.zeros(len(k)) for k in modes]
        self.laplacian = [np.zeros(len(k)) for k in modes]
        for axis, n, h in zip(grid.axes, grid.n, grid.spacing, strict=True):
            self.gradient[axis] = operators.gradient_symbol(modes[axis], n, h)
            self.laplacian[axis] = operators.laplacian_symbol(modes[axis], n, h)
        last = grid.n[-1]
        k = modes[2]
        #: How often a mode of the half spectrum counts in a sum over all modes.
        weight = np.where((k == 0) | (2 * k == last), 1.0, 2.0)
        self.gradient[2], self.laplacian[2] = (
            np.repeat(symbol[2], 2) for symbol in (self.gradient, self.laplacian)
        )
        self.weight = np.repeat(weight, 2)
        #: This rank's place of the mean mode, if it has it.
        place = [np.flatnonzero(k == 0) for k in modes]
        self.mean = tuple(int(p[0]) for p in place) if all(len(p) for p in place) else None
