"""The commands and Python functions that a user has, one by one."""

import doctest
import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

import hpcsim as package
from hpcsim import api, cli, models
from hpcsim.errors import InputError
from hpcsim.parallel.launcher import mpirun_environment
from tests.launch import command, hpcsim, messages

QUICK = ["--set", "time.end=0.05", "--set", "ensemble.members=16", "--set", "start.spin=600",
         "--set", "start.tilt={range = [0.2, 1.0]}"]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    done = hpcsim("run", "gyroscope", *QUICK, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_help_needs_no_heavy_import():
    """`hpcsim --help` loads neither numpy nor numba, MPI, HDF5 or the schema."""
    code = (
        "import sys; from hpcsim import cli; cli.call(['--help']);"
        "heavy = {'numpy', 'numba', 'mpi4py', 'h5py', 'pydantic', 'tqdm', 'matplotlib'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "run" in done.stdout


@pytest.mark.parametrize("name", sorted(cli.hpcsim.commands))
def test_every_command_has_help(name):
    done = hpcsim(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def test_version():
    assert package.__version__ in hpcsim("--version").stdout


def test_a_misspelt_command_is_corrected():
    done = hpcsim("shwo", "gyroscope")
    assert done.returncode == 2
    assert "did you mean show?" in messages(done)[0]


def test_cases_lists_all_by_model():
    listed = hpcsim("cases")
    assert listed.returncode == 0
    rows = json.loads(hpcsim("cases", "--json").stdout)
    assert {row["name"] for row in rows} == set(models.builtin_cases())
    for row in rows:
        assert row["name"] in listed.stdout
        assert row["title"] in listed.stdout


@pytest.mark.parametrize("name", models.builtin_cases())
def test_what_show_prints_runs_unchanged(name, tmp_path):
    (tmp_path / "mine.toml").write_text(hpcsim("show", name).stdout)
    done = hpcsim("run", "mine.toml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_dry_run_tells_the_plan_and_writes_nothing(ranks, tmp_path):
    arguments = ["--dry-run", "--set", "time.dt=0.0006"]
    done = hpcsim("run", "gyroscope", *arguments, ranks=ranks, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "steps      3600" in done.stdout
    assert "dt = 0.000555555555556 instead of 0.0006" in done.stdout
    for word in ("dt limit", "memory", "401 frames", "time "):
        assert word in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_default_folder_is_named_after_the_case(tmp_path):
    (tmp_path / "mine.toml").write_text(hpcsim("show", "gyroscope").stdout)
    assert hpcsim("run", "mine.toml", *QUICK, cwd=tmp_path).returncode == 0
    assert (tmp_path / "runs" / "mine" / "output.h5").exists()
    again = hpcsim("run", "mine.toml", "--restart", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


def test_run_folder_holds_what_the_documents_say(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {"case.toml", "output.h5", "checkpoints", "summary.json", "log.txt"}
    summary = json.loads((finished / "summary.json").read_text())
    keys = {"case", "model", "status", "exit", "steps", "time", "wall_seconds", "ranks", "versions"}
    assert keys | {"figures"} == set(summary)
    assert {"members", "steps_per_second", "drift_energy", "drift_lz", "drift_spin"} <= set(
        summary["figures"]
    )
    assert all(isinstance(value, int | float) for value in summary["figures"].values())
    log = (finished / "log.txt").read_text()
    assert "[rank 0] finished: 100 steps" in log


def test_output_has_units_and_dims_everywhere_and_the_case_inside(finished):
    with h5py.File(finished / "output.h5") as file:
        attributes = {"hpcsim_version", "case", "model", "created", "units"}
        assert attributes <= set(file.attrs)
        assert file.attrs["case_toml"] == (finished / "case.toml").read_text()
        seen = []

        def check(name, item):
            if isinstance(item, h5py.Dataset):
                seen.append(name)
                assert len(item.attrs["dims"]) == item.ndim, name
                assert isinstance(item.attrs["units"], str), name

        file.visititems(check)
        assert "ensemble/invariants/energy" in seen
        assert list(file["ensemble/state"].attrs["dofs"])[:2] == ["q0", "q1"]
        assert file["ensemble/state"].shape == (11, 16, 8)
        np.testing.assert_array_equal(file["ensemble/t"][:], file["series/t"][:])


def test_fields_choose_what_is_recorded(tmp_path):
    chosen = ["--set", 'output.fields=["invariants"]']
    done = hpcsim("run", "gyroscope", *QUICK, *chosen, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    run = package.open_run(tmp_path / "run")
    assert "ensemble/state" not in run
    assert run["ensemble/invariants/energy"].shape == (11, 16)
    drawn = hpcsim("plot", tmp_path / "run")
    assert drawn.returncode == 2
    assert "hold no state" in messages(drawn)[0]


def test_info_tells_status_shapes_and_figures(finished):
    done = hpcsim("info", finished)
    assert "finished" in done.stdout
    assert "/ensemble/state  (frame 11, member 16, dof 8)" in done.stdout
    facts = json.loads(hpcsim("info", finished, "--json").stdout)
    assert facts["status"] == "finished"
    assert facts["arrays"]["ensemble/state"] == [11, 16, 8]
    assert facts["recorded_time"] == pytest.approx(0.05)
    assert hpcsim("info", finished.parent).returncode == 2


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_plot_draws_a_picture(ending, finished, tmp_path):
    picture = tmp_path / f"picture.{ending}"
    done = hpcsim("plot", finished, "--out", picture)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000
    refused = hpcsim("plot", finished, "--out", tmp_path / "picture.xyz")
    assert refused.returncode == 2
    assert "unknown picture format; allowed: " in messages(refused)[0]


def test_bench_refuses_unknown_names():
    done = hpcsim("bench", "ensembel")
    assert done.returncode == 2
    assert "did you mean ensemble?" in messages(done)[0]


def test_doctor_tries_two_ranks_and_finds_all_well():
    done = hpcsim("doctor")
    assert done.returncode == 0, done.stdout
    assert "ok  2 ranks, 1 file  started, written and read back" in done.stdout


@pytest.mark.parametrize("arguments", [["show", "gyroscope"], ["cases"], ["show", "nonsense"]])
def test_commands_that_need_no_ranks_speak_once_under_mpirun(arguments):
    alone, together = hpcsim(*arguments), hpcsim(*arguments, ranks=3)
    assert together.returncode == alone.returncode
    assert together.stdout == alone.stdout
    assert messages(together) == messages(alone)


def test_python_functions_as_documented(tmp_path):
    assert doctest.testmod(api).failed == 0
    run = package.run("gyroscope", {"time.end": 0.05}, out=tmp_path / "g", quiet=True)
    assert run.summary["status"] == "finished"
    assert run.case["time"]["end"] == 0.05
    assert run.series["t"].shape == (11,)
    assert "ensemble/state" in list(run)
    np.testing.assert_array_equal(
        run["ensemble/parameters/spin"][::-1], run.ensemble["parameters/spin"][:][::-1]
    )
    assert package.open_run(tmp_path / "g").series["drift_energy"][-1] < 1e-10
    with pytest.raises(InputError, match="did you mean end"):
        package.run("gyroscope", {"time.ned": 1}, out=tmp_path / "h")
    with pytest.raises(InputError, match="not empty"):
        package.run("gyroscope", out=tmp_path / "g")


@pytest.mark.mpi
def test_python_functions_under_mpirun(ranks, shared_tmp):
    run = package.run("gyroscope", {"time.end": 0.05}, out=shared_tmp / "g", quiet=True)
    assert run.summary["ranks"] == ranks.size
    assert run.summary["status"] == "finished"
    assert run.summary["figures"]["drift_energy"] < 1e-10
    assert run["ensemble/state"].shape == (11, 256, 8)
    ranks.barrier()
    with pytest.raises(InputError, match="not empty"):
        package.run("gyroscope", out=shared_tmp / "g")


def test_a_serial_h5py_serves_one_rank_and_refuses_more(tmp_path):
    """h5py is made to say that it was built without MPI."""
    program = [
        sys.executable,
        "-c",
        "import h5py, types, sys; h5py.get_config = lambda: types.SimpleNamespace(mpi=False);"
        "from hpcsim import cli; cli.main()",
    ]
    done = hpcsim("run", "gyroscope", *QUICK, "--out", tmp_path / "one", program=program)
    assert done.returncode == 0, done.stderr
    done = hpcsim("run", "gyroscope", *QUICK, "--out", tmp_path / "two", ranks=2, program=program)
    assert done.returncode == 2
    (line,) = messages(done)
    assert "2 ranks need an h5py built with parallel HDF5" in line
    assert "./scripts/setup" in line
    assert not (tmp_path / "two").exists()


def test_one_rank_compiles_and_the_others_load(tmp_path):
    """In a fresh cache rank 0 misses and the others hit."""
    code = (
        "import sys, pathlib; from hpcsim import cli;"
        "from hpcsim.models.tops.gyroscope import Gyroscope;"
        "from hpcsim.parallel.launcher import launched_rank;"
        "code = cli.call(sys.argv[2:]); stats = Gyroscope.advance_members.stats;"
        "hits, misses = sum(stats.cache_hits.values()), sum(stats.cache_misses.values());"
        "pathlib.Path(sys.argv[1], f'rank{launched_rank()}').write_text(f'{hits} {misses}');"
        "sys.exit(code)"
    )
    program = [sys.executable, "-c", code, str(tmp_path)]
    arguments = command(3, "run", "gyroscope", *QUICK, "--out", tmp_path / "run", program=program)
    fresh = mpirun_environment() | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(arguments, env=fresh, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = [(tmp_path / f"rank{rank}").read_text() for rank in range(3)]
    assert found == ["0 1", "1 0", "1 0"]


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "file").touch()
    closed = mpirun_environment() | {"XDG_CACHE_HOME": str(tmp_path / "file" / "cache")}
    arguments = command(1, "run", "gyroscope", *QUICK, "--out", tmp_path / "run")
    done = subprocess.run(arguments, env=closed, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_plain_progress_lines_where_output_is_a_file(tmp_path, monkeypatch):
    """A long run without a terminal tells its progress in whole lines."""
    long = ["--set", "time.end=4000", "--set", "output.every=1", "--set", "time.wall_limit=15"]
    done = hpcsim("run", "gyroscope", *QUICK, *long, "--out", tmp_path / "run")
    assert done.returncode == 75, done.stderr
    assert "\r" not in done.stdout
    line = next(line for line in done.stdout.splitlines() if line.startswith("step "))
    assert all(word in line for word in (" of 8000000, t = ", " steps/s, ", " left"))
    assert f"[rank 0] {line}" in (tmp_path / "run" / "log.txt").read_text()
