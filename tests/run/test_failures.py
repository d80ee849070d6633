"""Faults nobody foresaw, and full disks: all ranks end, soon, with one line; nothing is lost."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launch import contents, hpcsim, messages

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty.py"))]
TOP = "hpcsim.models.tops.gyroscope:Gyroscope"

WORK = [
    "--set", "ensemble.members=70", "--set", "start.spin=600", "--set", "start.tilt=0.4",
    "--set", "time.end=1", "--set", "output.checkpoint_every=0.1",
]  # fmt: skip

#: place, call number
PLACES = {
    "case reading": ("hpcsim.driver:new_job", 1),
    "claiming the folder": ("hpcsim.output.folder:RunFolder.claim", 1),
    "constructor": (f"{TOP}.__init__", 1),
    "set-up": (f"{TOP}.prepare", 1),
    "step": (f"{TOP}.advance", 30),
    "frame": (f"{TOP}.frame", 5),
    "writer of frames": ("hpcsim.output.segments:write_share", 9),
    "writer of checkpoints": ("hpcsim.output.checkpoint:write_share", 3),
    "gathering": ("hpcsim.output.segments:pieces", 2),
    "figures": (f"{TOP}.figures", 1),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("ranks", "victim"), [(1, "0"), (3, "0"), (3, "2"), (3, "all")])
def test_a_fault_ends_all_ranks_with_one_line(place, ranks, victim, tmp_path):
    where, count = PLACES[place]
    if place == "case reading" and victim == "2":
        victim = "0"  # it happens on rank 0 only
    folder = tmp_path / "run"
    began = time.monotonic()
    done = hpcsim(
        where, "before", victim, count, "raise", "--", "run", "gyroscope", *WORK, "--out", folder,
        ranks=ranks, program=FAULTY,
    )  # fmt: skip
    assert time.monotonic() - began < 10
    assert done.returncode == 1, done.stdout + done.stderr
    lines = messages(done)
    assert len(lines) == 1, done.stderr
    assert "nobody foresaw" in lines[0]
    if (folder / "summary.json").exists():
        assert "Traceback" not in done.stderr
        assert f"traceback in {folder / 'log.txt'}" in lines[0]
        log = (folder / "log.txt").read_text()
        assert "Traceback" in log
        assert "ArithmeticError: a fault that nobody foresaw" in log
        if victim.isdigit():
            assert f"[rank {victim}] Traceback" in log
        summary = json.loads((folder / "summary.json").read_text())
        assert (summary["status"], summary["exit"]) == ("failed", 1)
        again = hpcsim("run", "gyroscope", "--restart", "--out", folder)
        assert again.returncode == 0, again.stderr


def test_bad_input_found_by_one_rank_in_the_run_is_no_hang(tmp_path):
    """Reading the results back fails on rank 1 alone."""
    code = (
        "from hpcsim import cli, driver; from hpcsim.errors import InputError;"
        "from hpcsim.parallel.launcher import launched_rank\n"
        "def fail(path): raise InputError('stale')\n"
        "if launched_rank() == 1: driver.Run = fail\n"
        "cli.main()"
    )
    program = [sys.executable, "-c", code]
    done = hpcsim("run", "gyroscope", *WORK, "--out", tmp_path / "r", ranks=3, program=program)
    assert done.returncode == 1, done.stdout
    assert len(messages(done)) == 1


@pytest.mark.parametrize(("ranks", "victim"), [(1, "0"), (3, "0"), (3, "1")])
@pytest.mark.parametrize("place", ["writer of frames", "writer of checkpoints"])
def test_a_full_disk_is_told_in_one_line(place, ranks, victim, tmp_path):
    where, _ = PLACES[place]
    folder = tmp_path / "run"
    done = hpcsim(
        where, "before", victim, 30, "full", "--", "run", "gyroscope", *WORK, "--out", folder,
        ranks=ranks, program=FAULTY,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    (line,) = messages(done)
    assert "cannot be written: " in line
    assert "No space left on device" in line
    again = hpcsim("run", "gyroscope", "--restart", "--out", folder)
    assert again.returncode == 0, again.stderr
    assert "restart from" in again.stdout


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB, where one may mount; elsewhere the test says so and is skipped."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_disk_that_fills_up(ranks, small_disk, tmp_path):
    """The run ends with exit 1 and one line; with more room it goes on to the same bits."""
    folder = small_disk / "run"
    work = [*WORK, "--set", "time.end=10"]
    done = hpcsim("run", "gyroscope", *work, "--out", folder, ranks=ranks)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = messages(done)
    assert "cannot be written" in line
    subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
    again = hpcsim("run", "gyroscope", "--restart", "--out", folder, ranks=ranks)
    assert again.returncode == 0, again.stderr
    assert "restart from" in again.stdout
    whole = hpcsim("run", "gyroscope", *work, "--out", tmp_path / "whole")
    assert whole.returncode == 0
    assert contents(folder / "output.h5") == contents(tmp_path / "whole" / "output.h5")


@pytest.mark.parametrize("ranks", [1, 3])
def test_divergence_saves_the_last_good_state(ranks, tmp_path):
    folder = tmp_path / "run"
    work = [*WORK, "--set", "time.dt=0.1", "--set", "output.every=0.1", "--set", "start.spin=3000"]
    done = hpcsim("run", "gyroscope", *work, "--out", folder, ranks=ranks)
    assert done.returncode == 3, done.stderr
    assert "no longer finite; a smaller time.dt may help (it happened in step" in done.stdout
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["status"], summary["exit"]) == ("diverged", 3)
    names = [path.name for path in sorted((folder / "checkpoints").iterdir())]
    assert names[-1] == f"step-{summary['steps']:012d}.h5"
    assert f"in step {summary['steps'] + 1}," in done.stdout
    datasets = contents(folder / "output.h5")
    assert datasets["ensemble/t"][0] == (summary["steps"] + 1,)


@pytest.mark.parametrize("ranks", [1, 3])
def test_divergence_is_found_exactly_between_frames_and_leaves_finite_frames(ranks, tmp_path):
    """With frames far apart the failing step is still named, and its predecessor is saved."""
    work = [*WORK, "--set", "time.dt=0.1", "--set", "output.every=1.0", "--set", "start.spin=3000"]
    folder = tmp_path / "run"
    done = hpcsim("run", "gyroscope", *work, "--out", folder, ranks=ranks)
    assert done.returncode == 3
    steps = json.loads((folder / "summary.json").read_text())["steps"]
    assert 0 < steps < 10
    again = hpcsim("run", "gyroscope", "--restart", "--out", folder)
    assert again.returncode == 3
    assert json.loads((folder / "summary.json").read_text())["steps"] == steps
