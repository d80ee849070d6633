"""The test command: pytest alone, then pytest under mpirun with 2, 3 and 4 ranks; one closing line.

A parallel run counts as failed unless every rank executed every test that was collected for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = (2, 3, 4)
#: The whole of one pytest run; single tests have their own, shorter limit.
LIMIT_SECONDS = 1800
NO_TESTS = 5


def pytest(ranks: int, arguments: list[str]) -> tuple[int, int]:
    """Run the tests for so many ranks; (passed, failed)."""
    select = ["-m", "not mpi"] if ranks == 1 else ["-m", "mpi", "--with-mpi"]
    command = [sys.executable, "-m", "pytest", *select, *arguments]
    if ranks > 1:  # rank 0 alone reports; a failing rank speaks on stderr; no test is no failure
        quiet = '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec >/dev/null; "$@" || [ $? = 5 ]'
        command = ["mpirun", "-n", str(ranks), "bash", "-c", quiet, "bash", *command]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"HPCSIM_TEST_REPORTS": folder}
        print(f"\n==== {'serial' if ranks == 1 else f'{ranks} ranks'} ====", flush=True)
        try:
            code = subprocess.run(command, env=environment, timeout=LIMIT_SECONDS).returncode
        except subprocess.TimeoutExpired:
            print(f"no end after {LIMIT_SECONDS} s", flush=True)
            return 0, 1
        reports = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
    if len(reports) != ranks:
        print(f"only {len(reports)} of {ranks} ranks came to the end (exit code {code})")
        return 0, 1
    passed = min(report["passed"] for report in reports)
    failed = max(report["failed"] for report in reports)
    for report in reports:
        unexecuted = report["collected"] - report["passed"] - report["failed"] - report["skipped"]
        if unexecuted or (ranks > 1 and report["skipped"]):
            print(
                f"a rank left out {unexecuted + report['skipped']} of {report['collected']} tests"
            )
            failed = max(failed, 1)
    if code not in (0, NO_TESTS) and not failed:
        print(f"pytest ended with exit code {code}")
        failed = 1
    return passed, failed


def main() -> int:
    """Run all; the exit code."""
    began = time.monotonic()
    counts = [pytest(ranks, sys.argv[1:]) for ranks in (1, *RANKS)]
    passed, failed = (sum(column) for column in zip(*counts, strict=True))
    print(f"\nin {time.monotonic() - began:.0f} s, serial and on 2, 3 and 4 ranks:")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
