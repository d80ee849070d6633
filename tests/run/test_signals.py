"""Signals end a run with a checkpoint and exit code 75, whichever rank they reach."""

import json
import os
import signal
import time

import pytest

from tests.launch import contents, hpcsim, ranks_of, start

WORK = [
    "--set", "ensemble.members=500", "--set", "start.spin=600", "--set", "start.tilt=0.4",
    "--set", "output.every=0.1", "--set", "output.checkpoint_every=1000",
]  # fmt: skip


def running(folder, ranks, end=1000):
    """A long run, as soon as its loop has begun."""
    process = start(
        "run", "gyroscope", *WORK, "--set", f"time.end={end}", "--out", folder, ranks=ranks
    )
    until = time.monotonic() + 60
    while not (folder / "segments" / "constants.h5").exists():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.3)
    return process


def check_stopped(process, folder, sent):
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 75, output
    assert f"{sent.name} received" in output
    assert "Traceback" not in output
    done = hpcsim("info", folder)
    assert "stopped" in done.stdout
    assert len(list((folder / "checkpoints").iterdir())) == 1
    assert (folder / "output.h5").exists()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_one_rank_alone(sent, tmp_path):
    process = running(tmp_path / "run", 1)
    process.send_signal(sent)
    check_stopped(process, tmp_path / "run", sent)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
@pytest.mark.parametrize("victims", ["first", "last", "all"])
def test_some_of_three_ranks(sent, victims, tmp_path):
    process = running(tmp_path / "run", 3)
    pids = ranks_of(process)
    chosen = {"first": pids[:1], "last": pids[-1:], "all": pids}[victims]
    for pid in chosen:
        os.kill(pid, sent)
    check_stopped(process, tmp_path / "run", sent)


def test_usr1_to_mpirun_reaches_the_ranks(tmp_path):
    process = running(tmp_path / "run", 2)
    process.send_signal(signal.SIGUSR1)
    check_stopped(process, tmp_path / "run", signal.SIGUSR1)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_ends_mpirun_leaves_a_folder_that_restarts(sent, tmp_path):
    folder = tmp_path / "run"
    process = running(folder, 2, end=60)
    process.send_signal(sent)
    process.communicate(timeout=30)
    assert process.returncode != 0
    done = hpcsim("run", "gyroscope", "--restart", "--out", folder, ranks=2)
    assert done.returncode == 0, done.stderr
    whole = hpcsim("run", "gyroscope", *WORK, "--set", "time.end=60", "--out", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    assert contents(folder / "output.h5") == contents(tmp_path / "whole" / "output.h5")


def test_a_signal_before_the_loop_is_not_lost(tmp_path):
    """Sent while modules are being loaded: the run stops at its first step boundary."""
    folder = tmp_path / "run"
    process = start("run", "gyroscope", *WORK, "--set", "time.end=1000", "--out", folder)
    time.sleep(0.25)
    process.send_signal(signal.SIGUSR1)
    check_stopped(process, folder, signal.SIGUSR1)


def test_the_wall_limit_leaves_time_for_the_checkpoint(tmp_path):
    limit = ["--set", "time.end=1000", "--set", "time.wall_limit=4"]
    done = hpcsim("run", "gyroscope", *WORK, *limit, "--out", tmp_path / "run", ranks=2)
    assert done.returncode == 75, done.stderr
    assert "wall-time limit of 4 s" in done.stdout
    # its own clock, which starts with the command; half as much again for a machine that is busy
    assert 2 < json.loads((tmp_path / "run" / "summary.json").read_text())["wall_seconds"] < 6
