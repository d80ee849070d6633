"""Sealed files, on one rank and on several; the tests marked mpi run on 2, 3 and 4."""

import h5py
import numpy as np
import pytest

from hpcsim.errors import StorageError
from hpcsim.output.hdf5 import add_dataset, sealing, write_share, write_text
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share

#: Global shapes and the axis they are split along; fewer rows than ranks, none, and replicated.
LAYOUTS = [
    ((10, 3), 0),
    ((1, 4), 0),
    ((0, 4), 0),
    ((5, 7), 1),
    ((2, 3, 2), 1),
    ((6,), None),
    ((), None),
]


def global_array(shape):
    return np.arange(int(np.prod(shape)), dtype=float).reshape(shape) + 0.5


def share_of(shape, axis, ranks):
    whole = global_array(shape)
    if axis is None:
        return Share(whole)
    start, count = ranks.block(shape[axis])
    local = np.take(whole, range(start, start + count), axis)
    return Share(local, axis, start, shape[axis])


def write_all(path, ranks):
    with sealing(path, ranks) as file:
        for number, (shape, axis) in enumerate(LAYOUTS):
            share = share_of(shape, axis, ranks)
            assert share.shape == shape
            dataset = add_dataset(file, f"group/{number}", shape, share.local.dtype, {"units": "m"})
            write_share(dataset, share, ranks)


def check_all(path):
    with h5py.File(path, "r") as file:
        for number, (shape, _) in enumerate(LAYOUTS):
            dataset = file[f"group/{number}"]
            assert dataset.attrs["units"] == "m"
            np.testing.assert_array_equal(dataset[()], global_array(shape))


def test_every_layout_on_one_rank(tmp_path):
    write_all(tmp_path / "file.h5", Ranks.world())
    check_all(tmp_path / "file.h5")


@pytest.mark.mpi
def test_every_layout_on_several_ranks(ranks, shared_tmp):
    write_all(shared_tmp / "file.h5", ranks)
    check_all(shared_tmp / "file.h5")
    assert not list(shared_tmp.glob("*.part"))


def test_a_failure_leaves_the_old_file_and_no_new_one(tmp_path):
    path = tmp_path / "file.h5"
    write_all(path, Ranks.world())
    with (
        pytest.raises(StorageError, match=r"file\.h5: cannot be written: disk on fire"),
        sealing(path, Ranks.world()),
    ):
        raise OSError("disk on fire")
    check_all(path)


def test_a_stale_unsealed_file_is_replaced(tmp_path):
    (tmp_path / "file.h5.part").write_bytes(b"rubbish of a killed process")
    write_all(tmp_path / "file.h5", Ranks.world())
    check_all(tmp_path / "file.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["file.h5"]


def test_text_files_are_whole(tmp_path):
    write_text(tmp_path / "a.json", "old")
    write_text(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").read_text() == "new"
    with pytest.raises(StorageError, match="cannot be written"):
        write_text(tmp_path / "missing" / "a.json", "text")
