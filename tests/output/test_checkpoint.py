import shutil

import h5py
import numpy as np
import pytest

from hpcsim.output import checkpoint
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share

ROWS = 11
AXES = {"a": 0, "planes": 1, "whole": None}


def state(ranks, factor=1.0):
    """Three arrays: split along axis 0, split along axis 1, replicated."""
    start, count = ranks.block(ROWS)
    rows = np.arange(start, start + count)
    a = factor * (rows[:, None] + 0.1 * np.arange(3))
    planes = factor * (np.arange(2)[:, None, None] + 10.0 * rows[:, None] + np.zeros(4))
    return {
        "a": Share(a, 0, start, ROWS),
        "planes": Share(planes, 1, start, ROWS),
        "whole": Share(factor * np.array([3.0, 4.0])),
    }


def save(folder, ranks, steps=(10, 20, 30)):
    for step in steps:
        checkpoint.write(folder, step, step // 5, state(ranks, step), ranks)


def check_read(folder, ranks, step):
    found, damaged = checkpoint.newest_good(folder, AXES, ranks)
    assert found is not None
    assert (found.step, found.frames) == (step, step // 5)
    expected = state(ranks, step)
    for name, values in checkpoint.read(found, expected).items():
        np.testing.assert_array_equal(values, expected[name].local)
    return damaged


def test_round_trip_and_only_the_last_few_are_kept(tmp_path):
    ranks = Ranks.world()
    save(tmp_path, ranks, range(10, 70, 10))
    assert [path.name[-5:-3] for path in checkpoint.paths(tmp_path)] == ["40", "50", "60"]
    assert check_read(tmp_path, ranks, 60) == []


@pytest.mark.mpi
def test_round_trip_on_several_ranks(ranks, shared_tmp):
    save(shared_tmp, ranks)
    assert check_read(shared_tmp, ranks, 30) == []


@pytest.mark.mpi
def test_what_several_ranks_wrote_one_reads_and_the_reverse(ranks, shared_tmp):
    alone = Ranks(ranks.comm.Split(ranks.rank))
    save(shared_tmp, ranks)
    if ranks.is_root:
        check_read(shared_tmp, alone, 30)
        save(shared_tmp, alone, [40])
    ranks.barrier()
    check_read(shared_tmp, ranks, 40)


def flip_byte_of_data(path):
    with h5py.File(path) as file:
        offset = file["planes"].id.get_offset() + 100
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:700])


def empty(path):
    path.write_bytes(b"")


def change_header(path):
    with h5py.File(path, "r+") as file:
        file.attrs["facts"] = str(file.attrs["facts"]).replace('"step": 30', '"step": 31')


def other_model(path):
    with h5py.File(path, "w") as file:
        file["b"] = 1.0


DAMAGES = [flip_byte_of_data, truncate, empty, change_header, other_model]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_is_reported_and_the_one_before_is_used(damage, tmp_path):
    save(tmp_path, Ranks.world())
    damage(checkpoint.paths(tmp_path)[-1])
    (line,) = check_read(tmp_path, Ranks.world(), 20)
    assert line.startswith("step-000000000030.h5 is damaged (")


@pytest.mark.mpi
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen_by_all_ranks(damage, ranks, shared_tmp):
    save(shared_tmp, ranks)
    if ranks.is_root:
        damage(checkpoint.paths(shared_tmp)[-1])
    ranks.barrier()
    (line,) = check_read(shared_tmp, ranks, 20)
    assert "step-000000000030.h5 is damaged" in line


def test_none_is_left(tmp_path):
    save(tmp_path, Ranks.world(), [10])
    truncate(checkpoint.paths(tmp_path)[0])
    found, damaged = checkpoint.newest_good(tmp_path, AXES, Ranks.world())
    assert found is None
    assert len(damaged) == 1


def test_files_with_other_names_are_not_taken_for_checkpoints(tmp_path):
    save(tmp_path, Ranks.world(), [10])
    shutil.copy(checkpoint.paths(tmp_path)[0], tmp_path / "step-000000000099.h5.part")
    assert len(checkpoint.paths(tmp_path)) == 1


def test_thousands_of_ranks_fit_in_the_header(tmp_path, monkeypatch):
    """The checksums of 10 000 writers make a header of some 100 kB."""
    ranks = Ranks.world()
    rows = np.arange(20_000.0)
    blocks = [
        [start, 2, checkpoint.zlib.crc32(rows[start : start + 2].tobytes())]
        for start in range(0, 20_000, 2)
    ]
    monkeypatch.setattr(checkpoint, "checksums", lambda share, ranks: blocks)
    checkpoint.write(tmp_path, 1, 1, {"x": Share(rows, 0, 0, 20_000)}, ranks)
    found, damaged = checkpoint.newest_good(tmp_path, {"x": 0}, ranks)
    assert (found.step, damaged) == (1, [])
