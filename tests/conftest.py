"""Rules for all tests: a time limit each; under mpirun a failure ends all ranks with its stack."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hpcsim.parallel.launcher import launched_rank
from hpcsim.parallel.ranks import Ranks

SECONDS_PER_TEST = 180


def pytest_addoption(parser):
    parser.addoption("--kill", action="store_true", help="also run the 50 kill-and-restart trials")


def pytest_configure(config):
    if not config.getoption("timeout", None):
        config.option.timeout = SECONDS_PER_TEST
    config.counts = {"collected": 0, "passed": 0, "failed": 0, "skipped": 0}


def pytest_collection_finish(session):
    session.config.counts["collected"] = len(session.items)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--kill"):
        kept = [item for item in items if "kill" not in item.keywords]
        config.hook.pytest_deselected(items=[item for item in items if "kill" in item.keywords])
        items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    counts = item.config.counts
    if report.failed:
        counts["failed"] += 1
        if launched_rank() is not None:
            end_all_ranks(item, report)
    elif report.skipped:
        counts["skipped"] += 1
    elif report.when == "call":
        counts["passed"] += 1
    return report


def end_all_ranks(item, report):
    """Print this rank's stack and end the job: the other ranks may wait for it for ever."""
    item.config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
    ranks = Ranks.world()
    print(f"\n[rank {ranks.rank}] {item.nodeid} failed:\n{report.longreprtext}", file=sys.stderr)
    sys.stderr.flush()
    ranks.comm.Abort(1)


def pytest_sessionfinish(session):
    folder = os.environ.get("HPCSIM_TEST_REPORTS")
    if folder:
        report = Path(folder) / f"{launched_rank() or 0}.json"
        report.write_text(json.dumps(session.config.counts))


@pytest.fixture
def ranks():
    """All ranks of the test job."""
    return Ranks.world()


@pytest.fixture
def shared_tmp(ranks, tmp_path):
    """A temporary folder that is the same on every rank."""
    return ranks.share(tmp_path)
