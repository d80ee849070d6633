"""Killed at any moment, a run restarts to the bits of the one that nothing disturbed.

A few kills run with all tests; `--kill` adds 50 at random moments.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from hpcsim.output.run import Run
from tests.launch import contents, end, hpcsim, ranks_of, start

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty.py"))]

#: Some 2 s of work with 60 checkpoints, so that most moments are near a write.
WORK = [
    "--set", "ensemble.members=70", "--set", "start.spin={range = [400, 800]}",
    "--set", "start.tilt=0.4", "--set", "time.end=30", "--set", "output.every=0.05",
    "--set", "output.checkpoint_every=0.5",
]  # fmt: skip


@pytest.fixture(scope="module")
def uncut(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uncut") / "run"
    done = hpcsim("run", "gyroscope", *WORK, "--out", folder)
    assert done.returncode == 0, done.stderr
    return contents(folder / "output.h5")


def restart_and_compare(folder, ranks, uncut):
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder, ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(folder / "output.h5") == uncut
    assert not (folder / "segments").exists()
    assert not list(folder.rglob("*.part"))


def check_readable(folder):
    """After a kill, what was sealed can be looked at."""
    if (folder / "summary.json").exists():
        told = hpcsim("info", folder)
        assert told.returncode == 0, told.stderr
        assert Run(folder).summary["status"] in ("running", "finished")


AIMED = {
    "in a write of frames": ("hpcsim.output.segments:write_share", "before", 9),
    "in a write of a checkpoint": ("hpcsim.output.checkpoint:write_share", "before", 6),
    "after a checkpoint's data": ("hpcsim.output.checkpoint:write_share", "after", 8),
    "before a rename": ("os:replace", "before", 7),
    "between rename and sync": ("os:replace", "after", 7),
    "between checkpoint and pruning": ("hpcsim.output.checkpoint:paths", "before", 4),
    "in the gathering": ("hpcsim.output.segments:pieces", "before", 40),
    "gathered, segments still there": ("pathlib:Path.rmdir", "before", 1),
    "at the summary": ("hpcsim.output.folder:RunFolder.write_summary", "before", 3),
    "in the set-up": ("hpcsim.models.tops.gyroscope:Gyroscope.prepare", "before", 1),
}


@pytest.mark.parametrize("moment", AIMED)
@pytest.mark.parametrize(("ranks", "victim", "after"), [(1, "all", 2), (3, "0", 1)])
def test_killed_at_an_aimed_moment(moment, ranks, victim, after, uncut, tmp_path):
    where, when, count = AIMED[moment]
    folder = tmp_path / "run"
    fault = [where, when, victim, count, "kill", "--"]
    done = hpcsim(*fault, "run", "gyroscope", *WORK, "--out", folder, ranks=ranks, program=FAULTY)
    assert done.returncode not in (0, 1, 2, 3, 75), done.stdout
    check_readable(folder)
    restart_and_compare(folder, after, uncut)


def test_another_rank_than_0_is_killed_in_a_write(uncut, tmp_path):
    fault = ["hpcsim.output.segments:write_share", "before", "2", "9", "kill", "--"]
    folder = tmp_path / "run"
    done = hpcsim(*fault, "run", "gyroscope", *WORK, "--out", folder, ranks=3, program=FAULTY)
    assert done.returncode not in (0, 1, 2, 3, 75)
    restart_and_compare(folder, 2, uncut)


def kill_at_random(folder, chance, uncut):
    """Up to three kills of one rank or all, on changing numbers of ranks, then a run to the end."""
    kills = 0
    for attempt in range(3):
        ranks = chance.choice([1, 2, 3])
        order = ["--restart"] if attempt and (folder / "case.toml").exists() else WORK
        process = start("run", "gyroscope", *order, "--out", folder, ranks=ranks)
        time.sleep(chance.uniform(0.3, 3.0))
        if process.poll() is None:
            victims = ranks_of(process)
            if chance.random() < 0.5:
                victims = [chance.choice(victims)]
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            kills += 1
        process.communicate(timeout=60)
        check_readable(folder)
    if (folder / "case.toml").exists():
        restart_and_compare(folder, chance.choice([1, 2, 4]), uncut)
    return kills


def test_killed_at_random_moments(uncut, tmp_path):
    chance = random.Random(11)
    kills = sum(kill_at_random(tmp_path / f"run{number}", chance, uncut) for number in range(2))
    assert kills


@pytest.mark.kill
@pytest.mark.timeout(1800)
def test_killed_50_times_at_random_moments(uncut, tmp_path):
    chance = random.Random()
    kills = runs = 0
    while kills < 50:
        kills += kill_at_random(tmp_path / f"run{runs}", chance, uncut)
        runs += 1
    print(f"{kills} kills in {runs} runs, every one restarted to the same bits")


def test_a_run_that_is_still_going_can_be_looked_at(tmp_path):
    folder = tmp_path / "run"
    process = start("run", "gyroscope", *WORK, "--set", "time.end=30000", "--out", folder, ranks=2)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if list(folder.glob("checkpoints/step-*.h5")):
                break
            time.sleep(0.1)
        for _ in range(5):
            told = hpcsim("info", folder)
            assert told.returncode == 0, told.stderr
            assert "running" in told.stdout
            run = Run(folder)
            frames = len(run["ensemble/t"])
            assert run["ensemble/state"][:].shape == (frames, 70, 8)
        drawn = hpcsim("plot", folder, "--out", tmp_path / "picture.png")
        assert drawn.returncode == 0, drawn.stderr
        refused = hpcsim("run", "gyroscope", "--restart", "--out", folder)
        assert refused.returncode == 2
        assert "in use by a run that is still going" in refused.stderr
    finally:
        end(process)
