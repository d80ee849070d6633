import h5py
import numpy as np
import pytest

from hpcsim.models.interface import Quantity
from hpcsim.output import segments
from hpcsim.output.run import Run
from hpcsim.output.segments import Recorder, drop_after, gather, sealed_frames
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share

QUANTITIES = {
    "ensemble/state": Quantity(("member", "dof"), "m", (("dofs", ("x", "y")),)),
    "ensemble/mass": Quantity(("member",), "kg"),
    "series/energy": Quantity((), "J"),
}
MEMBERS = 5
ATTRIBUTES = {"case": "test", "units": "SI"}


def frame(number, ranks):
    start, count = ranks.block(MEMBERS)
    rows = np.arange(start, start + count)[:, None] + 100.0 * number + np.array([0.0, 0.5])
    return {
        "ensemble/state": Share(rows, 0, start, MEMBERS),
        "series/energy": Share(np.array(float(number))),
    }


def expected(frames):
    number = np.arange(frames)[:, None, None]
    return np.arange(MEMBERS)[None, :, None] + 100.0 * number + np.array([0.0, 0.5])


def record(run, ranks, numbers, seals, first=0):
    """Record frames, one per step, and seal after the given steps."""
    (run / "segments").mkdir(exist_ok=True, parents=True)
    recorder = Recorder(run / "segments", QUANTITIES, ranks, first)
    start, count = ranks.block(MEMBERS)
    recorder.write_constants({"ensemble/mass": Share(np.ones(count), 0, start, MEMBERS)})
    for number in numbers:
        recorder.record(0.1 * number, frame(number, ranks))
        if number in seals:
            recorder.seal(number)
    return recorder


def make_run(run):
    (run / "case.toml").write_text("[case]\nname = 'test'\n")
    (run / "summary.json").write_text('{"model": "test", "status": "running"}')


def check_run(run, frames):
    opened = Run(run)
    assert opened["ensemble/state"].shape == (frames, MEMBERS, 2)
    np.testing.assert_array_equal(opened["ensemble/state"][:], expected(frames))
    np.testing.assert_array_equal(opened.series["energy"][:], np.arange(frames))
    np.testing.assert_allclose(opened["ensemble/t"][:], 0.1 * np.arange(frames), atol=1e-15)
    np.testing.assert_array_equal(opened["/ensemble/mass"][:], np.ones(MEMBERS))
    assert opened.ensemble["state"].attributes == {
        "units": "m", "dims": ["frame", "member", "dof"], "dofs": ["x", "y"],
    }  # fmt: skip


def check_gathered(run, frames):
    with h5py.File(run / "output.h5") as file:
        np.testing.assert_array_equal(file["ensemble/state"][:], expected(frames))
        assert file.attrs["case"] == "test"
        for name in ("ensemble/state", "ensemble/t", "ensemble/mass", "series/energy", "series/t"):
            assert {"units", "dims"} <= set(file[name].attrs)
    assert not (run / "segments").exists()


@pytest.mark.parametrize("seals", [{9}, {0, 9}, {2, 3, 9}, set(range(10))])
def test_segments_read_as_one_and_gather_to_one(seals, tmp_path):
    ranks = Ranks.world()
    make_run(tmp_path)
    record(tmp_path, ranks, range(10), seals)
    check_run(tmp_path, 10)
    gather(tmp_path, ATTRIBUTES, ranks)
    check_gathered(tmp_path, 10)
    check_run(tmp_path, 10)


@pytest.mark.mpi
def test_gather_on_several_ranks(ranks, shared_tmp):
    if ranks.is_root:
        make_run(shared_tmp)
    record(shared_tmp, ranks, range(10), {2, 3, 9})
    check_run(shared_tmp, 10)
    ranks.barrier()
    gather(shared_tmp, ATTRIBUTES, ranks)
    check_gathered(shared_tmp, 10)


def test_unsealed_frames_are_not_seen(tmp_path):
    make_run(tmp_path)
    record(tmp_path, Ranks.world(), range(10), {4})
    check_run(tmp_path, 5)


def test_frames_after_a_restart_replace_those_that_were_ahead(tmp_path):
    """Sealed to frame 9, restarted from a checkpoint at step 4: 5 and later come anew."""
    ranks = Ranks.world()
    make_run(tmp_path)
    record(tmp_path, ranks, range(10), {4, 9})
    drop_after(tmp_path / "segments", 4)
    check_run(tmp_path, 5)
    record(tmp_path, ranks, range(5, 8), {7}, first=5)
    gather(tmp_path, ATTRIBUTES, ranks)
    check_gathered(tmp_path, 8)


def test_a_gathered_file_is_the_first_part_of_what_comes_next(tmp_path):
    ranks = Ranks.world()
    make_run(tmp_path)
    record(tmp_path, ranks, range(6), {5})
    gather(tmp_path, ATTRIBUTES, ranks)
    record(tmp_path, ranks, range(6, 9), {8}, first=6)
    check_run(tmp_path, 9)
    gather(tmp_path, ATTRIBUTES, ranks)
    check_gathered(tmp_path, 9)


def test_a_gathered_file_that_is_ahead_is_cut(tmp_path):
    """Its newest checkpoint was damaged, so the run goes on from an earlier frame."""
    ranks = Ranks.world()
    make_run(tmp_path)
    record(tmp_path, ranks, range(9), {8})
    gather(tmp_path, ATTRIBUTES, ranks)
    record(tmp_path, ranks, range(4, 6), {5}, first=4)
    assert [(sealed.first, sealed.count) for sealed in sealed_frames(tmp_path)] == [(0, 4), (4, 2)]
    check_run(tmp_path, 6)
    gather(tmp_path, ATTRIBUTES, ranks)
    check_gathered(tmp_path, 6)


def test_killed_between_rename_and_removal_of_the_segments(tmp_path, monkeypatch):
    ranks = Ranks.world()
    make_run(tmp_path)
    record(tmp_path, ranks, range(6), {2, 5})
    monkeypatch.setattr(segments.Path, "unlink", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        gather(tmp_path, ATTRIBUTES, ranks)
    monkeypatch.undo()
    check_run(tmp_path, 6)
    gather(tmp_path, ATTRIBUTES, ranks)
    check_gathered(tmp_path, 6)


def test_buffer_is_bounded(tmp_path, monkeypatch):
    """A segment is full after BUFFER_BYTES: here three frames of 88 bytes."""
    monkeypatch.setattr(segments, "BUFFER_BYTES", 3 * 88)
    recorder = record(tmp_path, Ranks.world(), range(3), set())
    assert recorder.full
    recorder.seal(2)
    assert not recorder.full


INDICES = [
    np.s_[:], np.s_[3], np.s_[-1], np.s_[2:7], np.s_[::-2], np.s_[7:2], np.s_[1:9:3, 2],
    np.s_[4, 1:3, 0], np.s_[..., 1], np.s_[:, [0, 3]], np.s_[[8, 0, 5]], (), np.s_[...],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES)
def test_lazy_arrays_index_as_numpy_does(index, tmp_path):
    make_run(tmp_path)
    record(tmp_path, Ranks.world(), range(10), {2, 3, 9})
    array = Run(tmp_path)["ensemble/state"]
    np.testing.assert_array_equal(array[index], expected(10)[index])


def test_lazy_arrays_know_their_bounds_and_convert(tmp_path):
    make_run(tmp_path)
    record(tmp_path, Ranks.world(), range(10), {9})
    array = Run(tmp_path)["ensemble/state"]
    with pytest.raises(IndexError):
        array[10]
    np.testing.assert_array_equal(np.asarray(array), expected(10))
    assert repr(array) == "<ensemble/state (10, 5, 2) float64 [m]>"
    with pytest.raises(KeyError, match=r"it has ensemble/mass, ensemble/state"):
        Run(tmp_path)["ensemble/stat"]
    with pytest.raises(AttributeError):
        _ = Run(tmp_path).fluid
