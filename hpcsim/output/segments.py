"""Frames: buffered in memory, sealed in segments, gathered into one `output.h5` at the end.

A segment is a complete HDF5 file with some consecutive frames. No file is ever open between two
steps, so a process may die at any moment: what has been sealed is whole, and what has not is
computed again. Every checkpoint is preceded by a seal, so no segment reaches across one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np

from hpcsim.errors import StorageError
from hpcsim.output.hdf5 import Attributes, add_dataset, sealing, write_share
from hpcsim.parallel.share import Share

if TYPE_CHECKING:
    from hpcsim.models.interface import Quantity
    from hpcsim.parallel.ranks import Ranks

BUFFER_BYTES = 32 << 20  # per rank
MOST_FRAMES = 1024  # in a segment
PIECE_BYTES = 8 << 20  # what is copied at once when gathering
ASSUMED_BYTES_PER_SECOND = 2e8  # of a disk, until something has been written

CONSTANTS = "constants.h5"


class Recorder:
    """Collects the frames of all ranks and seals them; `frames` counts those recorded so far."""

    def __init__(
        self, folder: Path, quantities: Mapping[str, Quantity], ranks: Ranks, frames: int
    ) -> None:
        self.folder = folder
        self.quantities = quantities
        self.ranks = ranks
        self.frames = frames
        self._capacity = 0
        self._filled = 0
        self._times = np.empty(0)
        self._buffers: dict[str, np.ndarray] = {}
        self._like: dict[str, Share] = {}
        self._sealed_bytes = 0
        self._seal_seconds = 0.0

    def write_constants(self, arrays: Mapping[str, Share]) -> None:
        """Seal what does not change in time."""
        with sealing(self.folder / CONSTANTS, self.ranks) as file:
            for name, share in arrays.items():
                attributes = described(self.quantities[name], frames=False)
                dataset = add_dataset(file, name, share.shape, share.local.dtype, attributes)
                write_share(dataset, share, self.ranks)

    def record(self, now: float, frame: Mapping[str, Share]) -> None:
        """Take a copy of a frame."""
        if not self._capacity:
            self._allocate(frame)
        self._times[self._filled] = now
        for name, share in frame.items():
            self._buffers[name][self._filled] = share.local
        self._filled += 1
        self.frames += 1

    def _allocate(self, frame: Mapping[str, Share]) -> None:
        size = sum(np.prod(share.shape) * share.local.itemsize for share in frame.values())
        fits = int(BUFFER_BYTES * self.ranks.size // max(int(size), 1))
        self._capacity = min(max(fits, 1), MOST_FRAMES)
        self._times = np.empty(self._capacity)
        for name, share in frame.items():
            self._like[name] = share
            self._buffers[name] = np.empty((self._capacity, *share.local.shape), share.local.dtype)

    @property
    def full(self) -> bool:
        """Whether the next frame would not fit; the same on every rank."""
        return 0 < self._capacity == self._filled

    def seal(self, step: int) -> None:
        """Write the buffered frames, if any, as the segment that ends at this step."""
        if not self._filled:
            return
        count, self._filled = self._filled, 0
        began = time.monotonic()
        with sealing(self.folder / f"step-{step:012d}.h5", self.ranks) as file:
            file.attrs["first"] = self.frames - count
            file.attrs["frames"] = count
            groups = {name.split("/")[0] for name in self._buffers}
            for group in sorted(groups):
                times = Share(self._times[:count])
                dataset = add_dataset(
                    file,
                    f"{group}/t",
                    times.shape,
                    times.local.dtype,
                    {"units": "s", "dims": ["frame"]},
                )
                write_share(dataset, times, self.ranks)
            for name, buffer in self._buffers.items():
                like = self._like[name]
                axis = None if like.axis is None else like.axis + 1
                share = Share(buffer[:count], axis, like.start, like.total)
                attributes = described(self.quantities[name], frames=True)
                dataset = add_dataset(file, name, share.shape, buffer.dtype, attributes)
                write_share(dataset, share, self.ranks)
                self._sealed_bytes += dataset.nbytes
        self._seal_seconds += time.monotonic() - began

    def gather_seconds(self) -> float:
        """How long gathering may take: all frames are read and written once more."""
        output = self.folder.parent / "output.h5"
        size = self._sealed_bytes + (output.stat().st_size if output.exists() else 0)
        speed = ASSUMED_BYTES_PER_SECOND
        if self._sealed_bytes:
            speed = self._sealed_bytes / self._seal_seconds
        return 2 * size / speed


def described(quantity: Quantity, frames: bool) -> dict[str, object]:
    """The attributes of a dataset."""
    dims = (("frame",) if frames else ()) + quantity.dims
    return {"units": quantity.units, "dims": list(dims), **dict(quantity.attributes)}


@dataclass(frozen=True)
class Sealed:
    """A file with frames first … first+count−1."""

    path: Path
    first: int
    count: int


def sealed_frames(run: Path) -> list[Sealed]:
    """Files that together hold every sealed frame once: `output.h5`, then segments in order.

    After a restart from an earlier checkpoint newer segments replace what older files hold from
    the same frame on.
    """
    found = []
    for path in [run / "output.h5", *segment_paths(run / "segments")]:
        if path.exists():
            with h5py.File(path, "r") as file:
                found.append(Sealed(path, int(file.attrs["first"]), int(file.attrs["frames"])))
    chosen: list[Sealed] = []
    for sealed in found:
        chosen = [
            Sealed(old.path, old.first, min(old.count, sealed.first - old.first))
            for old in chosen
            if old.first < sealed.first
        ]
        chosen.append(sealed)
    return [sealed for sealed in chosen if sealed.count]


def segment_paths(folder: Path) -> list[Path]:
    """The segments of a run, oldest first."""
    return sorted(folder.glob("step-*.h5"))


def drop_after(folder: Path, step: int) -> None:
    """Remove unsealed files, and segments beyond a step, whose frames will be computed again."""
    for path in segment_paths(folder):
        if int(path.stem.removeprefix("step-")) > step:
            path.unlink()
    for path in folder.glob("*.part"):
        path.unlink()


def gather(run: Path, attributes: Attributes, ranks: Ranks) -> None:
    """Make `output.h5` of all sealed frames and the constants, then let the segments go."""
    files = ranks.share(sealed_frames(run) if ranks.is_root else [])
    total = sum(sealed.count for sealed in files)
    if total != (files[-1].first + files[-1].count if files else 0):
        raise StorageError(f"{run}: some frames are missing between its segments")
    ranks.barrier()
    with sealing(run / "output.h5", ranks) as output:
        output.attrs["first"] = 0
        output.attrs["frames"] = total
        for name, value in attributes.items():
            output.attrs[name] = value
        with h5py.File(run / "segments" / CONSTANTS, "r") as source:
            for name, dataset in datasets(source):
                whole = dataset[()] if ranks.is_root else np.empty(dataset.shape, dataset.dtype)
                target = add_dataset(output, name, dataset.shape, dataset.dtype, dataset.attrs)
                write_share(target, Share(whole), ranks)
        turn = 0
        for index, sealed in enumerate(files):
            with h5py.File(sealed.path, "r") as source:
                for name, dataset in datasets(source):
                    if "frame" not in dataset.attrs["dims"]:
                        continue
                    if index == 0:
                        shape = (total, *dataset.shape[1:])
                        add_dataset(output, name, shape, dataset.dtype, dataset.attrs)
                    for piece in pieces(dataset, sealed.count):
                        turn += 1
                        if turn % ranks.size == ranks.rank:
                            span = slice(piece.start + sealed.first, piece.stop + sealed.first)
                            output[name][span] = dataset[piece]
    if ranks.is_root:
        for path in (run / "segments").glob("*"):
            path.unlink()
        (run / "segments").rmdir()
    ranks.barrier()


def datasets(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """All datasets of a file, by path, in a fixed order."""
    names: list[str] = []
    file.visititems(
        lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
    )
    for name in sorted(names):
        yield name, file[name]


def pieces(dataset: h5py.Dataset, count: int) -> Iterator[slice]:
    """Runs of frames small enough to copy at once."""
    frame = max(1, dataset.nbytes // max(1, dataset.shape[0]))
    step = max(1, PIECE_BYTES // frame)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
