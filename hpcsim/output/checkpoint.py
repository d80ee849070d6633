"""Checkpoints: the state as global arrays, checksummed, so that any number of ranks restarts."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hpcsim.errors import HpcsimError, StorageError
from hpcsim.output.hdf5 import add_dataset, sealing, write_share
from hpcsim.parallel.share import Share

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

KEPT = 3


@dataclass(frozen=True)
class Checkpoint:
    """A sealed state: the step it was taken at and the frames recorded by then."""

    path: Path
    step: int
    frames: int


def write(
    folder: Path, step: int, frames: int, state: Mapping[str, Share], ranks: Ranks
) -> Checkpoint:
    """Seal the state at a step, then let go of the oldest checkpoints."""
    path = folder / f"step-{step:012d}.h5"
    sums = {name: checksums(share, ranks) for name, share in state.items()}
    facts = json.dumps({"step": step, "frames": frames, "sums": sums}, sort_keys=True)
    with sealing(path, ranks) as file:
        file.attrs["facts"] = facts
        file.attrs["facts_sum"] = zlib.crc32(facts.encode())
        for name, share in state.items():
            write_share(add_dataset(file, name, share.shape, share.local.dtype, {}), share, ranks)
    if ranks.is_root:
        for old in paths(folder)[:-KEPT]:
            old.unlink(missing_ok=True)
    return Checkpoint(path, step, frames)


def checksums(share: Share, ranks: Ranks) -> list[list[int]]:
    """[start, length, CRC-32] of every rank's rows, in the order of the ranks."""
    local = np.ascontiguousarray(share.local)
    if share.axis is None:
        return [[0, -1, zlib.crc32(local.tobytes())]]
    mine = [share.start, local.shape[share.axis], zlib.crc32(local.tobytes())]
    return ranks.comm.allgather(mine) if ranks.size > 1 else [mine]


def paths(folder: Path) -> list[Path]:
    """The checkpoint files of a run, oldest first."""
    return sorted(
        file for file in folder.glob("step-*.h5") if re.fullmatch(r"step-\d+\.h5", file.name)
    )


def step_of(path: Path) -> int:
    """The step that a checkpoint's name tells."""
    return int(path.stem.removeprefix("step-"))


def newest_good(
    folder: Path, axes: Mapping[str, int | None], ranks: Ranks
) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is whole, and a line about each damaged one that was passed."""
    damaged: list[str] = []
    for path in reversed(ranks.share(paths(folder) if ranks.is_root else [])):
        try:
            problem: HpcsimError | None = None
            found = verify(path, axes, ranks)
        except HpcsimError as error:
            problem = error
        try:
            ranks.agree(problem)
        except HpcsimError as error:
            damaged.append(f"{path.name} is damaged ({error}); the one before it is tried")
            continue
        return found, damaged
    return None, damaged


def verify(path: Path, axes: Mapping[str, int | None], ranks: Ranks) -> Checkpoint:
    """Check a file against its checksums; the writers' blocks are split over the ranks."""
    try:
        with h5py.File(path, "r") as file:
            text = str(file.attrs["facts"])
            if zlib.crc32(text.encode()) != file.attrs["facts_sum"]:
                raise StorageError("its header does not match its checksum")
            facts: dict[str, Any] = json.loads(text)
            if set(facts["sums"]) != set(axes):
                raise StorageError("it holds other arrays than this model has")
            for name, blocks in facts["sums"].items():
                for start, length, expected in blocks[ranks.rank :: ranks.size]:
                    if (
                        zlib.crc32(rows(file[name], axes[name], start, length).tobytes())
                        != expected
                    ):
                        raise StorageError(f"array {name} does not match its checksum")
        return Checkpoint(path, facts["step"], facts["frames"])
    except (OSError, KeyError, ValueError, RuntimeError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise StorageError(reason) from None


def rows(dataset: h5py.Dataset, axis: int | None, start: int, length: int) -> np.ndarray:
    """Rows start … start+length−1 along an axis; the whole dataset if the axis is None."""
    if axis is None:
        return dataset[()]
    region = (slice(None),) * axis + (slice(start, start + length),)
    return dataset[region]


def read(checkpoint: Checkpoint, state: Mapping[str, Share]) -> dict[str, np.ndarray]:
    """This rank's share of every array, shaped like `state`."""
    with h5py.File(checkpoint.path, "r") as file:
        for name, share in state.items():
            if file[name].shape != share.shape:
                raise StorageError(
                    f"{checkpoint.path.name}: array {name} has shape {file[name].shape}, "
                    f"the case makes it {share.shape}"
                )
        return {
            name: rows(
                file[name],
                share.axis,
                share.start,
                share.local.shape[share.axis] if share.axis is not None else 0,
            )
            for name, share in state.items()
        }
