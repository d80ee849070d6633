"""The same bits on any number of ranks, after any stop, and after any restart."""

import json
import sys

import h5py
import pytest

from tests.launch import contents, hpcsim, messages

SMALL = [
    "--set", "ensemble.members=37", "--set", "start.spin={random = [400, 800]}",
    "--set", "start.tilt={range = [0.1, 1.5]}", "--set", "time.end=0.4",
    "--set", "output.checkpoint_every=0.1",
]  # fmt: skip


@pytest.fixture(scope="module")
def uncut(tmp_path_factory):
    """The datasets of a run on one rank that nothing disturbed."""
    folder = tmp_path_factory.mktemp("uncut") / "run"
    done = hpcsim("run", "gyroscope", *SMALL, "--out", folder)
    assert done.returncode == 0, done.stderr
    return contents(folder / "output.h5")


@pytest.mark.parametrize("ranks", [2, 3, 4, 40])
def test_bits_do_not_depend_on_the_number_of_ranks(ranks, uncut, tmp_path):
    """40 ranks are more than there are members: some have no rows."""
    if ranks == 40:
        ranks, extra = 4, ["--set", "ensemble.members=2"]
        one = hpcsim("run", "gyroscope", *SMALL, *extra, "--out", tmp_path / "one")
        assert one.returncode == 0, one.stderr
        expected = contents(tmp_path / "one" / "output.h5")
    else:
        extra, expected = [], uncut
    done = hpcsim("run", "gyroscope", *SMALL, *extra, "--out", tmp_path / "run", ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "run" / "output.h5") == expected
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["ranks"] == ranks


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 2), (2, 4)])
def test_stopped_by_the_wall_limit_and_restarted_on_other_ranks(before, after, uncut, tmp_path):
    """A limit of a microsecond stops after the first stride; each restart goes a little further."""
    limit = ["--set", "time.wall_limit=1e-6"]
    done = hpcsim("run", "gyroscope", *SMALL, *limit, "--out", tmp_path / "run", ranks=before)
    assert done.returncode == 75, done.stderr
    assert "--restart" in done.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["status"], summary["exit"]) == ("stopped", 75)
    with h5py.File(tmp_path / "run" / "output.h5") as file:
        assert file["ensemble/state"].shape[0] == summary["steps"] // 10 + 1
    again = hpcsim(
        "run", "gyroscope", "--restart", "--out", tmp_path / "run", "--set", "time.wall_limit=0",
        ranks=after,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert contents(tmp_path / "run" / "output.h5") == uncut


def test_a_finished_run_goes_on_to_a_later_end(uncut, tmp_path):
    folder = tmp_path / "run"
    assert (
        hpcsim("run", "gyroscope", *SMALL, "--set", "time.end=0.2", "--out", folder).returncode == 0
    )
    done = hpcsim(
        "run", "gyroscope", "--restart", "--out", folder, "--set", "time.end=0.4", ranks=2
    )
    assert done.returncode == 0, done.stderr
    assert contents(folder / "output.h5") == uncut


def test_a_finished_run_restarted_without_a_later_end_stays_as_it_is(uncut, tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert contents(folder / "output.h5") == uncut


def test_without_any_checkpoint_a_restart_starts_anew(uncut, tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    for path in (folder / "checkpoints").iterdir():
        path.unlink()
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder)
    assert done.returncode == 0, done.stderr
    assert "starting anew" in done.stdout
    assert contents(folder / "output.h5") == uncut


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_is_used(ranks, uncut, tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    newest = max((folder / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:2000])
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder, ranks=ranks)
    assert done.returncode == 0, done.stderr
    assert f"warning: {newest.name} is damaged" in done.stdout
    assert contents(folder / "output.h5") == uncut


def test_running_the_resolved_case_again_reproduces_the_run(uncut, tmp_path):
    assert hpcsim("run", "gyroscope", *SMALL, "--out", tmp_path / "a").returncode == 0
    done = hpcsim("run", tmp_path / "a" / "case.toml", "--out", tmp_path / "b")
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "b" / "output.h5") == uncut
    assert (tmp_path / "b" / "case.toml").read_text() == (tmp_path / "a" / "case.toml").read_text()


def test_only_a_few_keys_may_change_on_restart(tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    before = contents(folder / "output.h5")
    done = hpcsim(
        "run", "gyroscope", "--restart", "--out", folder,
        "--set", "time.dt=1e-3", "--set", "time.ende=2", ranks=3,
    )  # fmt: skip
    assert done.returncode == 2
    assert len(messages(done)) == 2
    assert "time.dt: cannot change on --restart" in messages(done)[0]
    assert "did you mean time.end?" in messages(done)[1]
    earlier = hpcsim("run", "gyroscope", "--restart", "--out", folder, "--set", "time.end=0.1")
    assert earlier.returncode == 2
    assert "already" in messages(earlier)[0]
    assert contents(folder / "output.h5") == before


def test_force_sets_the_old_run_aside(tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    old = contents(folder / "output.h5")
    done = hpcsim(
        "run", "gyroscope", *SMALL, "--set", "time.end=0.1", "--out", folder, "--force", ranks=2
    )
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "run.1" / "output.h5") == old
    assert contents(folder / "output.h5") != old


EAGER = [
    sys.executable,
    "-c",
    "from hpcsim import cli, driver; driver.SEAL_SECONDS = driver.KEEP_SECONDS = 0; cli.main()",
]


@pytest.mark.parametrize("ranks", [1, 3])
def test_sealing_and_keeping_at_every_stride_changes_nothing(ranks, uncut, tmp_path):
    folder = tmp_path / "run"
    done = hpcsim("run", "gyroscope", *SMALL, "--out", folder, ranks=ranks, program=EAGER)
    assert done.returncode == 0, done.stderr
    assert contents(folder / "output.h5") == uncut


def test_with_all_checkpoints_damaged_the_old_results_are_set_aside(uncut, tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    saved = sorted((folder / "checkpoints").iterdir())
    for path in saved:
        path.write_bytes(path.read_bytes()[:2000])
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder, ranks=2)
    assert done.returncode == 0, done.stderr
    assert "no good checkpoint: starting anew" in done.stdout
    assert contents(folder / "output.h5") == uncut
    assert contents(folder / "output.h5.1") == uncut
    names = {path.name for path in (folder / "checkpoints").iterdir()}
    assert {f"{path.name}.damaged" for path in saved} <= names
    assert {path.name for path in saved} <= names  # written anew


def test_a_restart_of_a_finished_run_keeps_its_speed(tmp_path):
    folder = tmp_path / "run"
    assert hpcsim("run", "gyroscope", *SMALL, "--out", folder).returncode == 0
    first = json.loads((folder / "summary.json").read_text())["figures"]
    assert hpcsim("run", "gyroscope", "--restart", "--out", folder).returncode == 0
    assert json.loads((folder / "summary.json").read_text())["figures"] == first
