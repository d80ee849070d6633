"""The distributed real Fourier transform: slabs of planes in space, rows of modes in Fourier space.

Fields of two axes are fields of three whose middle one has length 1, so one code serves both.

    physical   (component, x, y, z)     real;    this rank has some planes x
    spectral   (x, component, y, z)     complex; this rank has some rows y (2D: some z), all x

The component axis of spectral arrays is the second one because the blocks that ranks exchange then
arrive where they belong. Both directions are plain sums (divide by `points` once):

    forward    û_k = Σ_x u_x exp(−i k·x),     backward   u_x = Σ_k û_k exp(i k·x)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.compiled import kernel
from hpcsim.parallel.ranks import block
from hpcsim.transform import wisdom
from hpcsim.transform.fftw import BACKWARD, FORWARD, Effort, Plan

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks


def three(shape: Sequence[int]) -> tuple[int, int, int]:
    """A grid of two or three axes as one of three."""
    return (shape[0], 1, shape[1]) if len(shape) == 2 else (shape[0], shape[1], shape[2])


def kept_modes(n: int, truncated: bool, real: bool) -> np.ndarray:
    """Integer wavenumbers along an axis of n points, in the order of the transform.

    `real`: only k ≥ 0. `truncated`: only |k| < n/3, which makes quadratic products free of
    aliasing.
    """
    highest = (n - 1) // 3 if truncated else n // 2
    lowest = 0 if real else -((n - 1) // 3 if truncated else (n - 1) // 2)
    return np.concatenate([np.arange(highest + 1), np.arange(lowest, 0)])


class SlabTransform:
    """Transforms of fields with some numbers of components on one grid, planned at once.

    `modes` are the integer wavenumbers of this rank's spectral rows, one array per axis.
    """

    def __init__(
        self,
        shape: Sequence[int],
        ranks: Ranks,
        components: Sequence[int] = (1,),
        truncated: bool = False,
        effort: Effort = Effort.MEASURE,
    ) -> None:
        self.shape = nx, ny, nz = three(shape)
        self.ranks = ranks
        self.points = nx * ny * nz
        self.truncated = truncated
        self.components = tuple(sorted(set(components)))
        self._effort = effort
        self._half = nz // 2 + 1
        self._split_rows = ny > 1
        self._all_modes = (
            kept_modes(nx, truncated, real=False),
            kept_modes(ny, truncated, real=False),
            kept_modes(nz, truncated, real=True),
        )
        self._kept = tuple(len(modes) for modes in self._all_modes)
        self.start, self.count = block(nx, ranks.rank, ranks.size)
        self._planes = np.array([block(nx, rank, ranks.size) for rank in range(ranks.size)])
        self._parts = np.array([self._part(rank) for rank in range(ranks.size)])
        rows, columns = (slice(*span) for span in self._parts[ranks.rank])
        modes_x, modes_y, modes_z = self._all_modes
        self.modes = (modes_x, modes_y[rows], modes_z[columns])
        self._direct = ranks.size == 1 and not truncated
        self._allocate()
        wisdom.planning(ranks, self._plan_key(), effort, self._make_plans)

    def _part(self, rank: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns of modes that a rank has: ((first, end), (first, end))."""
        _, rows, columns = self._kept
        if self._split_rows:
            start, count = block(rows, rank, self.ranks.size)
            return (start, start + count), (0, columns)
        start, count = block(columns, rank, self.ranks.size)
        return (0, rows), (start, start + count)

    # ---- shapes ----

    @property
    def physical_shape(self) -> tuple[int, int, int]:
        """This rank's part of a physical field."""
        return (self.count, *self.shape[1:])

    @property
    def spectral_share(self) -> tuple[int, int, int]:
        """How spectral arrays are split: (axis, first row of this rank, rows of all ranks)."""
        axis = 2 if self._split_rows else 3
        return axis, int(self._parts[self.ranks.rank, axis - 2, 0]), self._kept[axis - 1]

    def spectral_shape(self, components: int) -> tuple[int, int, int, int]:
        """This rank's part of a spectral field."""
        x, y, z = (len(modes) for modes in self.modes)
        return (x, components, y, z)

    def physical(self, components: int, halo: int = 0) -> np.ndarray:
        """A new physical array, zero, with so many planes more at both ends."""
        return np.zeros((components, self.count + 2 * halo, *self.shape[1:]))

    def spectral(self, components: int) -> np.ndarray:
        """A new spectral array, zero."""
        return np.zeros(self.spectral_shape(components), np.complex128)

    @staticmethod
    def compile() -> None:
        """Compile the loops that a single rank may not need, or load them."""
        planes, flat = np.zeros((1, 1, 1), np.complex128), np.zeros(1, np.complex128)
        parts, one = np.array([[[0, 1], [0, 1]]]), np.zeros(1, np.int64)
        pack(planes, flat, one, parts, one, 1, 0)
        unpack(flat, planes, one, parts, one, one[:0], 1, 0)

    # ---- plans ----

    def _plan_key(self) -> tuple[int, ...]:
        """What the plans of a rank depend on."""
        x, _, y, z = self.spectral_shape(1)
        return (*self.shape, self.count, x, y, z, self.ranks.size, *self.components)

    def _allocate(self) -> None:
        nx, ny, _ = self.shape
        most = self.components[-1]
        part = len(self.modes[1]) * len(self.modes[2])
        kept_y, kept_z = self._kept[1:]
        self._rows_buffer = np.zeros(nx * most * part, np.complex128)
        if not self._direct:
            self._planes_buffer = np.zeros((self.count, ny, self._half), np.complex128)
        if self.ranks.size > 1:
            self._exchange_buffer = np.zeros(self.count * most * kept_y * kept_z, np.complex128)
        modes_y = self._all_modes[1]
        self._place_y = np.where(modes_y < 0, modes_y + ny, modes_y)
        self._dropped_y = np.setdiff1d(np.arange(ny), self._place_y)
        sizes = (self._parts[:, :, 1] - self._parts[:, :, 0]).prod(axis=1)
        # numbers of complex values per component that go to, and come from, each rank
        self._leaving = self.count * sizes
        self._arriving = self._planes[:, 1] * part

    def _make_plans(self) -> None:
        nx, ny, nz = self.shape
        effort, half = self._effort, self._half
        kept_z = self._kept[2]
        part = len(self.modes[1]) * len(self.modes[2])
        self._plans: dict[tuple[str, int], Plan] = {}
        plans = self._plans
        field = np.zeros(self.physical_shape)
        for components in self.components:
            width = components * part  # of a row of modes in a spectral array
            step = width if self._direct else ny * half  # from plane to plane below the z pass
            planes = self._rows_buffer if self._direct else self._planes_buffer
            along_y = (ny, half, half)
            over_y = [(self.count, step, step), (kept_z, 1, 1)]
            to_planes = [(self.count, ny * nz, step), (ny, nz, half)]
            to_field = [(self.count, step, ny * nz), (ny, half, nz)]
            plans["z", components] = Plan("dft_r2c", (nz, 1, 1), to_planes, field, planes, effort)
            plans["-z", components] = Plan("dft_c2r", (nz, 1, 1), to_field, planes, field, effort)
            if ny > 1:
                for name, sign in (("y", FORWARD), ("-y", BACKWARD)):
                    plans[name, components] = Plan(
                        "dft", along_y, over_y, planes, planes, effort, sign
                    )
            along_x, over_x = (nx, width, width), [(width, 1, 1)]
            buffer = self._rows_buffer
            plans["x", components] = Plan("dft", along_x, over_x, buffer, buffer, effort, FORWARD)
            source = buffer if self.truncated else np.zeros(nx * width, np.complex128)
            plans["-x", components] = Plan("dft", along_x, over_x, source, buffer, effort, BACKWARD)

    # ---- transforms ----

    def forward(self, physical: np.ndarray, spectral: np.ndarray) -> None:
        """û = Σ u exp(−i k·x); `physical` may have a halo cut off, its planes are contiguous."""
        components = len(physical)
        plans = self._plans
        rows = self._rows_view(components)
        if self._direct:
            for index in range(components):
                plans["z", components](physical[index], spectral[:, index])
                if self._split_rows:
                    plans["y", components](spectral[:, index], spectral[:, index])
            plans["x", components](spectral, spectral)
            return
        target = rows if self.truncated else spectral
        several = self.ranks.size > 1
        packed = self._exchange_buffer if several else target.reshape(-1)
        offsets = components * (np.cumsum(self._leaving) - self._leaving)
        planes = self._planes_buffer
        for index in range(components):
            plans["z", components](physical[index], planes)
            if self._split_rows:
                plans["y", components](planes, planes)
            pack(planes, packed, offsets, self._parts, self._place_y, components, index)
        if several:
            self._exchange(packed, self._leaving, target, self._arriving, components)
        plans["x", components](target, target)
        if self.truncated:
            low, high = self._ends()
            spectral[:low] = rows[:low]
            spectral[low:] = rows[high:]

    def backward(self, spectral: np.ndarray, physical: np.ndarray) -> None:
        """u = Σ û exp(i k·x); `spectral` stays as it is."""
        components = len(physical)
        plans = self._plans
        rows = self._rows_view(components)
        if self.truncated:
            low, high = self._ends()
            rows[:low] = spectral[:low]
            rows[low:high] = 0.0
            rows[high:] = spectral[low:]
            plans["-x", components](rows, rows)
        else:
            plans["-x", components](spectral, rows)
        if self._direct:
            for index in range(components):
                if self._split_rows:
                    plans["-y", components](rows[:, index], rows[:, index])
                plans["-z", components](rows[:, index], physical[index])
            return
        several = self.ranks.size > 1
        packed = self._exchange_buffer if several else rows.reshape(-1)
        if several:
            self._exchange(rows, self._arriving, packed, self._leaving, components)
        offsets = components * (np.cumsum(self._leaving) - self._leaving)
        planes = self._planes_buffer
        for index in range(components):
            unpack(
                packed,
                planes,
                offsets,
                self._parts,
                self._place_y,
                self._dropped_y,
                components,
                index,
            )
            if self._split_rows:
                plans["-y", components](planes, planes)
            plans["-z", components](planes, physical[index])

    def _rows_view(self, components: int) -> np.ndarray:
        shape = (self.shape[0], components, len(self.modes[1]), len(self.modes[2]))
        return self._rows_buffer[: np.prod(shape)].reshape(shape)

    def _ends(self) -> tuple[int, int]:
        """Number of kept rows k_x ≥ 0, and where those with k_x < 0 begin among all rows."""
        low = (self._kept[0] + 1) // 2
        return low, self.shape[0] - (self._kept[0] - low)

    def _exchange(
        self,
        source: np.ndarray,
        leaving: np.ndarray,
        target: np.ndarray,
        arriving: np.ndarray,
        components: int,
    ) -> None:
        """One exchange of contiguous blocks between all ranks."""
        from mpi4py import MPI

        self.ranks.comm.Alltoallv(
            [source, components * leaving, MPI.C_DOUBLE_COMPLEX],
            [target, components * arriving, MPI.C_DOUBLE_COMPLEX],
        )


@kernel
def pack(
    planes: np.ndarray,
    packed: np.ndarray,
    offsets: np.ndarray,
    parts: np.ndarray,
    place_y: np.ndarray,
    components: int,
    index: int,
) -> None:
    """Order the kept modes of one component by the rank they go to: (rank, x, component, y, z)."""
    for rank in range(len(parts)):
        first_y, end_y = parts[rank, 0]
        first_z, end_z = parts[rank, 1]
        rows, columns = end_y - first_y, end_z - first_z
        for x in range(planes.shape[0]):
            start = offsets[rank] + (x * components + index) * rows * columns
            for y in range(rows):
                source = planes[x, place_y[first_y + y]]
                target = packed[start + y * columns : start + (y + 1) * columns]
                for z in range(columns):
                    target[z] = source[first_z + z]


@kernel
def unpack(
    packed: np.ndarray,
    planes: np.ndarray,
    offsets: np.ndarray,
    parts: np.ndarray,
    place_y: np.ndarray,
    dropped_y: np.ndarray,
    components: int,
    index: int,
) -> None:
    """Put the blocks of all ranks back into planes; modes that are not kept become zero."""
    kept_z = parts[-1, 1, 1]
    for x in range(planes.shape[0]):
        for y in dropped_y:
            planes[x, y, :] = 0.0
        for y in place_y:
            planes[x, y, kept_z:] = 0.0
        for rank in range(len(parts)):
            first_y, end_y = parts[rank, 0]
            first_z, end_z = parts[rank, 1]
            rows, columns = end_y - first_y, end_z - first_z
            start = offsets[rank] + (x * components + index) * rows * columns
            for y in range(rows):
                target = planes[x, place_y[first_y + y]]
                source = packed[start + y * columns : start + (y + 1) * columns]
                for z in range(columns):
                    target[first_z + z] = source[z]
