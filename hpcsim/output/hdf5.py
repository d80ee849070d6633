"""HDF5 files that are complete or not there: written aside by all ranks, synced, renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

# A sealed file is never open for writing, so HDF5's own lock protects nothing, and on some
# cluster file systems it fails.
os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")

import h5py
import numpy as np

from hpcsim.errors import InputError, StorageError
from hpcsim.parallel.share import Share

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

Attributes = Mapping[str, Any]


def require_parallel(ranks: Ranks) -> None:
    """Refuse several ranks when h5py was built without MPI."""
    if ranks.size > 1 and not h5py.get_config().mpi:
        raise InputError(
            f"{ranks.size} ranks need an h5py built with parallel HDF5, this one is serial: "
            "call ./scripts/setup, or run on one rank ('hpcsim doctor' tells more)"
        )


def create(path: Path, ranks: Ranks) -> h5py.File:
    """A new file opened for writing by all ranks."""
    if ranks.size == 1:
        return h5py.File(path, "w", libver="v110")
    return h5py.File(path, "w", libver="v110", driver="mpio", comm=ranks.comm)


def add_dataset(
    file: h5py.File,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    attributes: Attributes,
) -> h5py.Dataset:
    """A contiguous dataset (docs/output.md says why) with its attributes, not filled beforehand."""
    dataset = file.create_dataset(name, shape, dtype, fill_time="never")
    for key, value in attributes.items():
        dataset.attrs[key] = value
    return dataset


def write_share(dataset: h5py.Dataset, share: Share, ranks: Ranks) -> None:
    """Write every rank's share, collectively; ranks without rows and replicated data included."""
    if 0 in dataset.shape:
        return
    local = np.asarray(share.local, order="C")
    transfer = h5py.h5p.create(h5py.h5p.DATASET_XFER)
    if ranks.size > 1:
        transfer.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)
    space = dataset.id.get_space()
    if local.size == 0 or (share.axis is None and not ranks.is_root):
        space.select_none()
        memory = h5py.h5s.create_simple((1,))
        memory.select_none()
    elif local.ndim == 0:
        memory = h5py.h5s.create(h5py.h5s.SCALAR)
    else:
        start = tuple(part.start for part in share.region)
        space.select_hyperslab(start, local.shape)
        memory = h5py.h5s.create_simple(local.shape)
    dataset.id.write(
        memory, space, local if local.size else np.zeros(1, local.dtype), dxpl=transfer
    )


@contextmanager
def sealing(path: Path, ranks: Ranks) -> Iterator[h5py.File]:
    """A new file for all ranks to fill; it gets its name only when it is complete and on disk."""
    aside = path.with_name(path.name + ".part")
    with storage(path):
        if ranks.is_root:
            aside.unlink(missing_ok=True)
        ranks.barrier()
        file = create(aside, ranks)
        try:
            yield file
            file.flush()
        except BaseException:
            if ranks.size == 1:  # closing is collective: a rank that failed would wait for ever
                file.close()
            raise
        file.close()
        ranks.barrier()
        if ranks.is_root:
            rename_synced(aside, path)
        ranks.barrier()


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn what the system or HDF5 says of a failed write into one line."""
    try:
        yield
    except (OSError, RuntimeError) as problem:  # h5py raises either
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise StorageError(f"{path}: cannot be written: {reason}") from problem


def rename_synced(aside: Path, path: Path) -> None:
    """Give a finished file its name, such that it survives a crash right after."""
    sync(aside)
    os.replace(aside, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make the content of a file, or the names in a folder, reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """A small text file by one rank: complete or not there."""
    aside = path.with_name(path.name + ".part")
    with storage(path):
        aside.write_text(text, encoding="utf-8")
        rename_synced(aside, path)
