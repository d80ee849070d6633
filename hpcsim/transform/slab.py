"""The distributed real Fourier transform: slabs of planes in space, rows of modes in Fourier space.

Fields of two axes are fields of three whose middle one has length 1, so one code serves both.

    physical   (component, x, y, z)     real;    this rank has some planes x
    spectral   (x, component, y, z)     complex; this rank has some rows y (2D: some z), all x

The component axis of spectral arrays is the second one because the blocks that ranks exchange then
arrive where they belong. Both directions are plain sums (divide by `points` once):

    forward    û_k = Σ_x u_x exp(−i k·x),     backward   u_x = Σ_k û_k exp(i k·x)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.compiled import kernel
from hpcsim.parallel.halo import Halo
from hpcsim.parallel.ranks import block
from hpcsim.transform import wisdom
from hpcsim.transform.fftw import BACKWARD, FORWARD, Effort, Plan, execute

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

#: Numbers of values for each rank, and where they start.
Blocks = tuple[np.ndarray, np.ndarray]
CACHE_LINE = 64
#: Columns of modes that are transformed along x together.
COLUMNS = 512
#: Part of the cache that lines which are transformed together fill.
CHUNK_BYTES = 1 << 17


def aligned(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """A new array, zero, that starts at a cache line."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    store = np.zeros(count + CACHE_LINE, np.uint8)
    start = -store.ctypes.data % CACHE_LINE
    return store[start : start + count].view(dtype).reshape(shape)


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
        self._slabs = np.array([block(nx, rank, ranks.size) for rank in range(ranks.size)])
        self._parts = np.array([self._part(rank) for rank in range(ranks.size)])
        rows, columns = (slice(*span) for span in self._parts[ranks.rank])
        modes_x, modes_y, modes_z = self._all_modes
        self.modes = (modes_x, modes_y[rows], modes_z[columns])
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
        return aligned((components, self.count + 2 * halo, *self.shape[1:]), np.float64)

    def spectral(self, components: int) -> np.ndarray:
        """A new spectral array, zero."""
        return aligned(self.spectral_shape(components), np.complex128)

    def halo(self, width: int) -> Halo:
        """Planes of the neighbours around physical arrays."""
        return Halo(self.shape[0], width, self.ranks)

    # ---- plans ----

    def _plan_key(self) -> tuple[int, ...]:
        """What the plans of a rank depend on."""
        x, _, y, z = self.spectral_shape(1)
        return (*self.shape, self.count, x, y, z, self.ranks.size, *self.components)

    def _allocate(self) -> None:
        nx, ny, _ = self.shape
        most = self.components[-1]
        part = len(self.modes[1]) * len(self.modes[2])
        #: Planes that are transformed together: a cache full of lines in 2D, one plane in 3D.
        chunk = 1 if ny > 1 else min(self.count, CHUNK_BYTES // (16 * self._half))
        self._planes = aligned((max(1, chunk), ny, self._half), np.complex128)
        self._rows = aligned((nx * most * part,), np.complex128)
        modes_y = self._all_modes[1]
        self._place_y = np.where(modes_y < 0, modes_y + ny, modes_y)
        self._dropped_y = np.setdiff1d(np.arange(ny), self._place_y)
        sizes = (self._parts[:, :, 1] - self._parts[:, :, 0]).prod(axis=1)
        others = np.arange(self.ranks.size) != self.ranks.rank
        # numbers of complex values per component that go to, and come from, each other rank,
        # and where they start; what a rank keeps never leaves its rows
        leaving, arriving = self.count * sizes * others, self._slabs[:, 1] * part
        starts = np.cumsum(leaving) - leaving, np.cumsum(arriving) - arriving
        self._blocks = {
            count: (
                (count * leaving, count * starts[0]),
                (count * arriving * others, count * starts[1]),
            )
            for count in self.components
        }
        self._packed = aligned((most * leaving.sum(),), np.complex128)

    def _make_plans(self) -> None:
        nx = self.shape[0]
        part = len(self.modes[1]) * len(self.modes[2])
        #: By number of components and direction: (block of columns or the rest, for `execute`).
        self._row_calls: dict[tuple[int, int], np.ndarray] = {}
        for components in self.components:
            width = components * part  # of a row of modes in a spectral array
            for sign in (FORWARD, BACKWARD):
                inside = self.truncated or sign == FORWARD
                source = self._rows if inside else aligned((nx * width,), np.complex128)
                arrays = (source, self._rows, self._effort, sign)
                self._row_calls[components, sign] = np.array(
                    [
                        Plan("dft", (nx, width, width), [(columns, 1, 1)], *arrays).call
                        for columns in (COLUMNS if width >= COLUMNS else 0, width % COLUMNS)
                    ]
                )
        sizes = (len(self._planes), self.count % len(self._planes))
        calls = [self._plane_plans(size) for size in sizes]
        #: By direction: (size: all or the rest, (z, y), what `execute` takes).
        self._plane_calls = {sign: np.array([call[sign] for call in calls]) for sign in calls[0]}

    def _plane_plans(self, planes: int) -> dict[int, list[tuple[int, int]]]:
        """Transforms along z and y of so many planes, by direction."""
        _, ny, nz = self.shape
        half, effort = self._half, self._effort
        field, modes = aligned((planes, ny, nz), np.float64), self._planes
        far, near = [(planes, ny * nz, ny * half), (ny, nz, half)], [(planes, ny * half, ny * half)]
        back = [(count, out, into) for count, into, out in far]
        odd = bool(ny * nz % 2)  # every other plane of a field starts at half the alignment
        along_y, over_y = (ny, half, half), [*near, (self._kept[2], 1, 1)]
        z = {
            FORWARD: Plan("dft_r2c", (nz, 1, 1), far, field, modes, effort, unaligned=odd),
            BACKWARD: Plan("dft_c2r", (nz, 1, 1), back, modes, field, effort, unaligned=odd),
        }
        return {
            sign: [z[sign].call, Plan("dft", along_y, over_y, modes, modes, effort, sign).call]
            for sign in z
        }

    # ---- transforms ----

    def forward(self, physical: np.ndarray, spectral: np.ndarray) -> None:
        """û = Σ u exp(−i k·x); `physical` may have a halo cut off, its planes are contiguous."""
        components = len(physical)
        rows = self._rows_view(components) if self.truncated else spectral
        leaving, arriving = self._blocks[components]
        planes_to_modes(
            physical,
            self._plane_calls[FORWARD],
            self._planes,
            self._packed,
            self._own(rows),
            self.ranks.rank,
            leaving[1],
            self._parts,
            self._place_y,
        )
        self._exchange(self._packed, leaving, rows, arriving)
        transform_rows(rows, self._row_calls[components, FORWARD], rows)
        if self.truncated:
            low, high = self._ends()
            spectral[:low] = rows[:low]
            spectral[low:] = rows[high:]

    def backward(self, spectral: np.ndarray, physical: np.ndarray) -> None:
        """u = Σ û exp(i k·x); `spectral` stays as it is."""
        components = len(physical)
        rows, source = self._rows_view(components), spectral
        if self.truncated:
            low, high = self._ends()
            rows[:low] = spectral[:low]
            rows[low:high] = 0.0
            rows[high:] = spectral[low:]
            source = rows
        transform_rows(source, self._row_calls[components, BACKWARD], rows)
        leaving, arriving = self._blocks[components]
        self._exchange(rows, arriving, self._packed, leaving)
        modes_to_planes(
            self._packed,
            self._own(rows),
            self.ranks.rank,
            self._plane_calls[BACKWARD],
            self._planes,
            physical,
            leaving[1],
            self._parts,
            self._place_y,
            self._dropped_y,
        )

    def _own(self, rows: np.ndarray) -> np.ndarray:
        """The part of the rows of modes that belongs to this rank's own planes."""
        return rows[self.start : self.start + self.count].reshape(-1)

    def _rows_view(self, components: int) -> np.ndarray:
        shape = (self.shape[0], components, len(self.modes[1]), len(self.modes[2]))
        return self._rows[: np.prod(shape)].reshape(shape)

    def _ends(self) -> tuple[int, int]:
        """Number of kept rows k_x ≥ 0, and where those with k_x < 0 begin among all rows."""
        low = (self._kept[0] + 1) // 2
        return low, self.shape[0] - (self._kept[0] - low)

    def _exchange(
        self, source: np.ndarray, leaving: Blocks, target: np.ndarray, arriving: Blocks
    ) -> None:
        """One exchange of contiguous blocks between all ranks."""
        if self.ranks.size > 1:
            from mpi4py import MPI

            kind = MPI.C_DOUBLE_COMPLEX
            self.ranks.comm.Alltoallv([source, leaving, kind], [target, arriving, kind])


# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False


@kernel
def transform_rows(source, calls, target):
    """Transform along x, a block of columns that fits the cache at a time; (x, …) contiguous."""
    first_in, first_out = source.reshape(-1), target.reshape(-1)
    width = len(first_in) // len(source)
    for start in range(0, width, COLUMNS):
        call = calls[0 if start + COLUMNS <= width else 1]
        execute(call[0], call[1], first_in[start:].ctypes.data, first_out[start:].ctypes.data)


@kernel
def planes_to_modes(field, calls, planes, packed, own, here, offsets, parts, place_y):
    """Transform planes along z and y while they are in the cache, and pack their modes.

    `packed` is ordered by the rank that the kept modes go to: (rank, x, component, y, z); those
    that stay on this rank, `here`, go to `own`.
    """
    components, count = field.shape[:2]
    chunk, ny, half = planes.shape
    in_place = chunk == 1 and len(parts) == 1 and parts[0, 0, 1] == ny and parts[0, 1, 1] == half
    for first in range(0, count, chunk):
        size = min(chunk, count - first)
        z_pass, y_pass = calls[0 if size == chunk else 1]
        for component in range(components):
            place = planes.ctypes.data
            if in_place:  # all modes of the plane go to one place in their order
                place = own[(first * components + component) * ny * half :].ctypes.data
            execute(z_pass[0], z_pass[1], field[component, first].ctypes.data, place)
            if ny > 1:
                execute(y_pass[0], y_pass[1], place, place)
            if in_place:
                continue
            for rank in range(len(parts)):
                (first_y, end_y), (first_z, end_z) = parts[rank]
                rows, columns = end_y - first_y, end_z - first_z
                block = own if rank == here else packed[offsets[rank] :]
                for x in range(size):
                    row = ((first + x) * components + component) * rows
                    for y in range(rows):
                        start = (row + y) * columns
                        source = planes[x, place_y[first_y + y], first_z:end_z]
                        goal = block[start : start + columns]
                        for z in range(columns):
                            goal[z] = source[z]


@kernel
def modes_to_planes(packed, own, here, calls, planes, field, offsets, parts, place_y, dropped_y):
    """The way back of `planes_to_modes`; modes that are not kept are zero."""
    components, count = field.shape[:2]
    chunk, ny, half = planes.shape
    kept_z = parts[-1, 1, 1]
    for first in range(0, count, chunk):
        size = min(chunk, count - first)
        z_pass, y_pass = calls[0 if size == chunk else 1]
        for component in range(components):
            for rank in range(len(parts)):
                (first_y, end_y), (first_z, end_z) = parts[rank]
                rows, columns = end_y - first_y, end_z - first_z
                block = own if rank == here else packed[offsets[rank] :]
                for x in range(size):
                    row = ((first + x) * components + component) * rows
                    for y in range(rows):
                        start = (row + y) * columns
                        source = block[start : start + columns]
                        goal = planes[x, place_y[first_y + y], first_z:end_z]
                        for z in range(columns):
                            goal[z] = source[z]
            for x in range(size):
                for y in dropped_y:
                    planes[x, y, :kept_z] = 0.0
                if kept_z < half:
                    planes[x, :, kept_z:] = 0.0
            place = planes.ctypes.data
            if ny > 1:
                execute(y_pass[0], y_pass[1], place, place)
            execute(z_pass[0], z_pass[1], place, field[component, first].ctypes.data)
