"""Flows as runs: the same on any number of ranks, restarts, fields, figures, bad input."""

import json

import h5py
import numpy as np
import pytest

import hpcsim
from tests.launch import contents, messages
from tests.launch import hpcsim as command

SMALL = ["--set", "fluid.n=[20,18]", "--set", "time.dt=0.01", "--set", "output.every=0.25"]
STIRRED = [
    "--set", "force.body=['sin(y)*cos(2*t)', '0.5*cos(x)']",
    "--set", "force.couple=['sin(x + y)*t']",
    "--set", "exact={}",
]  # fmt: skip


def velocity(folder):
    with h5py.File(folder / "output.h5") as file:
        return file["fluid/u"][:]


@pytest.mark.parametrize(
    "extra", [["--set", "fluid.operators=fourth"], ["--set", "fluid.operators=spectral"]]
)
def test_equal_on_any_number_of_ranks_to_rounding(extra, tmp_path):
    """100 steps on 1, 2, 3, 4 ranks agree to 1e-13 of the velocity, force and couple included."""
    for ranks in (1, 2, 3, 4):
        done = command(
            "run", "taylor-green-2d", *SMALL, *STIRRED, *extra, "--out", tmp_path / str(ranks),
            ranks=ranks,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    alone = velocity(tmp_path / "1")
    assert alone.shape == (5, 2, 20, 18)
    for ranks in (2, 3, 4):
        difference = np.abs(velocity(tmp_path / str(ranks)) - alone).max()
        assert difference < 1e-13 * np.abs(alone).max()


def test_space_on_any_number_of_ranks(tmp_path):
    """3D, more ranks than planes in Fourier space too: the surplus idles, with one warning."""
    small = [
        "--set", "fluid.n=[5,9,7]", "--set", "time.end=0.2",
        "--set", "time.dt=0.02", "--set", "output.every=0.1", "--set", "output.fields=['u']",
        "--set", "output.every_point=1", "--set", "output.precision=double",
        "--set", "fluid.operators=centred", "--set", "time.scheme=ark3",
    ]  # fmt: skip
    found = {}
    for ranks in (1, 4, 6):
        folder = tmp_path / str(ranks)
        done = command("run", "taylor-green-3d", *small, "--out", folder, ranks=ranks)
        assert done.returncode == 0, done.stderr
        assert ("the surplus idles" in done.stdout) == (ranks == 6)
        found[ranks] = velocity(folder)
    for ranks in (4, 6):
        np.testing.assert_allclose(found[ranks], found[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("ranks", [1, 3])
def test_two_starts_and_a_restart_give_the_same_bits(ranks, tmp_path):
    """Plans are measured, but once per machine; a restart takes those of its run."""
    long = [*SMALL, *STIRRED]
    for name in ("a", "b"):
        done = command("run", "taylor-green-2d", *long, "--out", tmp_path / name, ranks=ranks)
        assert done.returncode == 0, done.stderr
    whole = contents(tmp_path / "a" / "output.h5")
    assert contents(tmp_path / "b" / "output.h5") == whole
    assert (tmp_path / "a" / "fft-plans.txt").stat().st_size > 100
    cut = tmp_path / "cut"
    done = command(
        "run", "taylor-green-2d", *long, "--set", "time.end=0.5", "--out", cut, ranks=ranks
    )
    assert done.returncode == 0, done.stderr
    again = command(
        "run", "taylor-green-2d", "--restart", "--out", cut, "--set", "time.end=1.0", ranks=ranks
    )
    assert again.returncode == 0, again.stderr
    assert contents(cut / "output.h5") == whole
    other = command(
        "run", "taylor-green-2d", "--restart", "--out", tmp_path / "a", "--set", "time.end=1.25",
        ranks=2,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr


def test_restart_on_another_number_of_ranks_agrees_to_rounding(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run = ["run", "taylor-green-2d", *SMALL, *STIRRED]
    assert command(*run, "--out", whole).returncode == 0
    assert command(*run, "--set", "time.end=0.5", "--out", cut, ranks=3).returncode == 0
    done = command(
        "run", "taylor-green-2d", "--restart", "--out", cut, "--set", "time.end=1.0", ranks=2
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(velocity(cut), velocity(whole), rtol=0, atol=1e-13)


def test_reproducible_plans_are_not_measured(tmp_path):
    done = command(
        "run", "taylor-green-2d", *SMALL, "--set", "fluid.reproducible=true",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "run" / "fft-plans.txt").exists()


def test_figures_and_fields_of_taylor_green(tmp_path):
    run = hpcsim.run(
        "taylor-green-2d",
        {
            "fluid.n": [24, 48],
            "fluid.box": [2 * np.pi, 4 * np.pi],
            "output.every_point": 3,
            "output.precision": "single",
        },
        out=tmp_path / "run",
        quiet=True,
    )
    figures = run.summary["figures"]
    assert figures["max_divergence"] < 1e-13
    h = 2 * np.pi / 24
    rate = 4 * (1 - np.cos(h)) / h**2  # square cells: an exact solution but for the rate
    assert figures["velocity_error"] == pytest.approx(np.exp(0.05 * (2 - rate)) - 1, rel=1e-6)
    assert figures["energy_balance_error"] < 1e-8  # third order in ν λ dt = 3e-3
    assert figures["seconds_per_step"] > 0
    assert run["fluid/u"].shape == (11, 2, 8, 16)
    assert run["fluid/u"].dtype == np.float32
    assert run["fluid/vorticity"].shape == run["fluid/p"].shape == (11, 8, 16)
    x, y = run["fluid/x"][:][:, None], run["fluid/y"][:]
    np.testing.assert_allclose(run["fluid/u"][0, 0], np.sin(x) * np.cos(y), atol=1e-6)
    np.testing.assert_allclose(run["fluid/u"][0, 1], -np.cos(x) * np.sin(y), atol=1e-6)
    factor = 2 * np.sin(h) / h  # both derivatives by their stencils
    np.testing.assert_allclose(run["fluid/vorticity"][0], factor * np.sin(x) * np.sin(y), atol=1e-6)
    energy = run.series["kinetic_energy"][:]
    assert energy[0] == pytest.approx(0.25 * 8 * np.pi**2, rel=1e-12)
    assert run["fluid/spectrum"][0].sum() * 8 * np.pi**2 == pytest.approx(energy[0], rel=1e-12)


@pytest.mark.parametrize(("control", "scheme"), [("courant", "rk4"), ("error", "ark3")])
def test_controlled_steps_reach_the_same_flow(control, scheme, tmp_path):
    """One step per frame is far too long; control divides it and keeps the accuracy asked for."""
    changes = {
        "fluid.n": [24, 24],
        "fluid.viscosity": 0.01,
        "time.end": 2.0,
        "time.dt": 1.0,
        "output.every": 1.0,
        "start.velocity": ["sin(y)*2", "sin(x + 0.3) + cos(2*x)"],
        "exact.velocity": [],
        "exact.pressure": "",
        "time.scheme": scheme,
    }
    controlled = hpcsim.run(
        "taylor-green-2d",
        changes | {"time.control": control, "time.tolerance": 1e-6, "time.courant": 0.25},
        out=tmp_path / "controlled",
        quiet=True,
    )
    fine = hpcsim.run(
        "taylor-green-2d",
        changes | {"time.dt": 0.002, "time.scheme": "ark4"},
        out=tmp_path / "fine",
        quiet=True,
    )
    np.testing.assert_allclose(controlled["fluid/u"][-1], fine["fluid/u"][-1], rtol=0, atol=1e-4)


def test_too_long_a_step_ends_with_what_to_change(tmp_path):
    folder = tmp_path / "run"
    done = command(
        "run", "taylor-green-2d", "--set", "time.dt=0.5", "--set", "time.end=400",
        "--set", "output.every=1", "--set", "fluid.viscosity=0", "--set", "exact={}",
        "--set", "start.velocity=['sin(x)*cos(y) + 0.3*sin(3*y)', '-cos(x)*sin(y)']",
        "--out", folder, ranks=2,
    )  # fmt: skip
    assert done.returncode == 3
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("diverged")]
    assert "Courant number was" in line
    assert "time.dt = 0.016" in line
    assert json.loads((folder / "summary.json").read_text())["status"] == "diverged"
    assert list((folder / "checkpoints").iterdir())


def test_explicit_viscosity_beyond_its_limit_is_named_or_kept_to(tmp_path):
    stiff = [
        "run", "taylor-green-2d", "--set", "time.scheme=rk4", "--set", "time.dt=0.1",
        "--set", "fluid.viscosity=1.0",
    ]  # fmt: skip
    done = command(*stiff, "--set", "time.end=20", "--out", tmp_path / "named")
    assert done.returncode == 3
    assert "the explicit viscous term needs time.dt <= 0.003" in done.stdout
    kept = tmp_path / "kept"
    done = command(*stiff, "--set", "time.control=courant", "--out", kept)
    assert done.returncode == 0, done.stdout
    h = 2 * np.pi / 64
    rate = 4 * (1 - np.cos(h)) / h**2  # the discrete decay, far above the error of time
    error = hpcsim.open_run(kept).summary["figures"]["velocity_error"]
    assert error == pytest.approx(np.exp(2 - rate) - 1, rel=1e-6)


BAD = {
    "no grid": (["fluid.n=[0,0]"], "fluid.n[0] = 0: must be greater than or equal to 4"),
    "one axis": (["fluid.n=[64]"], "fluid.n = [64]: must be a list of at least 2"),
    "box": (["fluid.box=[1.0, 1.0, 1.0]"], "fluid.box has 3 lengths: must be 2"),
    "formula": (
        ["start.velocity=['sin(xx)', 'y']"],
        "start.velocity[0] = 'sin(xx)': column 5: unknown name 'xx'; did you mean x?",
    ),
    "number of formulas": (["force.body=['x']"], "force.body has 1 formulas: must be 2"),
    "both": (["fluid.reynolds=100"], "fluid.reynolds: stands for viscosity 1/Re and density 1"),
    "viscosity": (["fluid.viscosity=-1"], "fluid.viscosity = -1"),
    "no estimate": (["time.control=error"], "ars443 has no error estimate; ark3, ark4, ark5"),
    "parameter": (["parameters.sin=1.0"], "parameters.sin: has a meaning already"),
    "word": (["start.velocity=randon"], "start.velocity"),
    "memory": (["fluid.n=[32768,32768]", "output.every_point=1"], "make fluid.n smaller"),
    "viscosity left out": (["fluid={n = [8, 8], box = [1.0, 1.0]}"], "fluid.viscosity: missing"),
    "not finite": (
        ["start.velocity=['1/x', '0']"],
        "start.velocity[0] = '1/x': is not finite at x = 0, y = 0, t = 0",
    ),
    "force not finite": (["force.body=['sqrt(x - 9)', '0']"], "force.body[0] = 'sqrt(x - 9)': is"),
    "name taken": (["parameters.nu=3"], "parameters.nu: has a meaning already"),
    "name of a constant": (["parameters.pi=3"], "parameters.pi: has a meaning already"),
    "peak": (
        ["start.velocity=random", "start.peak=500", "exact={}"],
        "start.peak = 500: the grid keeps wavenumbers up to 31 only",
    ),
    "scheme in capitals": (["time.scheme=RK4"], "did you mean rk4?"),
    "table left out": (["viscosity=0.1"], "viscosity: unknown key; did you mean fluid.viscosity?"),
}


@pytest.mark.parametrize("scheme", ["euler", "ark3"])
def test_a_flow_starts_from_rest(scheme, tmp_path):
    """No work is done before the first step, which is no reason to call energy too much."""
    changes = {"start.velocity": "rest", "exact": {}, "force.body": ["sin(y)", "0"]}
    changes |= {"fluid.n": [16, 16], "time.scheme": scheme, "time.dt": 0.1}
    run = hpcsim.run("taylor-green-2d", changes, out=tmp_path / "run", quiet=True)
    assert run.summary["status"] == "finished"
    h = 2 * np.pi / 16
    rate = 0.05 * 2 * (1 - np.cos(h)) / h**2
    u = (1 - np.exp(-rate)) / rate  # u' = 1 − rate u
    assert np.abs(run["fluid/u"][-1]).max() == pytest.approx(u, rel=0.01)


def test_courant_control_from_rest_sees_the_force(tmp_path):
    """A strong force on a fluid at rest: the first parts are short although u is still 0."""
    changes = {
        "fluid.n": [32, 32],
        "start.velocity": "rest",
        "exact": {},
        "force.body": ["100*sin(y)", "100*sin(x)"],
        "time.scheme": "ars443",
        "time.end": 0.5,
        "output.every": 0.5,
    }
    controlled = {"time.control": "courant", "time.dt": 0.5, "time.courant": 0.25}
    found = hpcsim.run("taylor-green-2d", changes | controlled, out=tmp_path / "a", quiet=True)
    fine = hpcsim.run(
        "taylor-green-2d", changes | {"time.dt": 5e-4}, out=tmp_path / "b", quiet=True
    )
    error = np.abs(found["fluid/u"][-1] - fine["fluid/u"][-1]).max()
    assert error < 1e-3 * np.abs(fine["fluid/u"][-1]).max()


@pytest.mark.parametrize(("control", "scheme"), [("courant", "rk4"), ("error", "ark3")])
def test_restart_of_controlled_steps_gives_the_same_bits(control, scheme, tmp_path):
    run = [
        "run", "taylor-green-2d", *SMALL, *STIRRED, "--set", f"time.control={control}",
        "--set", f"time.scheme={scheme}", "--set", "time.dt=0.25", "--set", "time.courant=0.1",
        "--set", "time.tolerance=1e-7",
    ]  # fmt: skip
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert command(*run, "--out", whole).returncode == 0
    assert command(*run, "--set", "time.end=0.5", "--out", cut).returncode == 0
    again = command("run", "taylor-green-2d", "--restart", "--out", cut, "--set", "time.end=1.0")
    assert again.returncode == 0, again.stderr
    assert contents(cut / "output.h5") == contents(whole / "output.h5")
    figures = hpcsim.open_run(whole).summary["figures"]
    assert figures["controlled_steps"] > 12


def test_a_slow_flow_runs_with_a_step_as_long_as_its_frames(tmp_path):
    start = ["--set", "start.velocity=['1e-4*sin(y)', '0']", "--set", "exact={}"]
    done = command("run", "taylor-green-2d", *start, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "finished: 10 steps" in done.stdout


def test_a_narrow_jet_that_dt_does_not_see_is_said(tmp_path):
    jet = "100*exp(-((y - 0.75)/0.15)^2)"
    done = command(
        "run", "taylor-green-2d", "--set", f"start.velocity=['{jet}', '0']", "--set", "exact={}",
        "--set", "time.dt=0.1", "--set", "time.end=0.1", "--out", tmp_path / "run",
    )  # fmt: skip
    assert "note: the Courant number is 96.3 at the start; time.dt = 0.00052 would" in done.stdout


def test_scalars_of_a_known_flow(tmp_path):
    """u = (2 + sin y, 0), ρ = 3: momentum, enstrophy, dissipation, spectrum, by their integrals."""
    n, volume = 32, 4 * np.pi**2
    changes = {
        "fluid.n": [n, n],
        "fluid.density": 3.0,
        "fluid.viscosity": 0.3,
        "fluid.operators": "spectral",
        "start.velocity": ["2 + sin(y)", "0"],
        "exact": {},
        "time.end": 0.1,
    }
    run = hpcsim.run("taylor-green-2d", changes, out=tmp_path / "run", quiet=True)
    series = {name: array[0] for name, array in run.series.items()}
    assert series["momentum_x"] == pytest.approx(3 * volume * 2, rel=1e-12)
    assert series["momentum"] == pytest.approx(3 * volume * 2, rel=1e-12)
    assert series["kinetic_energy"] == pytest.approx(1.5 * volume * (4 + 0.5), rel=1e-12)
    assert series["enstrophy"] == pytest.approx(0.5 * volume * 0.5, rel=1e-12)
    assert series["dissipation"] == pytest.approx(0.3 * volume * 0.5, rel=1e-12)
    dt = run.case["time"]["dt"]
    assert series["courant"] == pytest.approx(3 * dt * n / (2 * np.pi), rel=1e-12)
    np.testing.assert_allclose(run["fluid/k"][:3], [0, 1, 2], rtol=1e-12)
    np.testing.assert_allclose(run["fluid/spectrum"][0, :3], [2, 0.25, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_pictures_of_a_flow(dim, tmp_path):
    name = f"taylor-green-{dim}d"
    changes = {
        "fluid.n": [12, 10, 8][:dim],
        "time.end": 0.2,
        "output.every": 0.1,
        "output.fields": ["u"],
    }
    changes |= {"time.dt": 0.05, "output.every_point": 3}
    hpcsim.run(name, changes, out=tmp_path / "run", quiet=True)
    assert command("plot", tmp_path / "run").returncode == 0
    assert (tmp_path / "run" / "plot.png").stat().st_size > 20_000
    assert command("movie", tmp_path / "run", "--out", tmp_path / "m.gif").returncode == 0
    assert (tmp_path / "m.gif").stat().st_size > 5_000


def test_two_starts_on_a_machine_that_learns_give_the_same_bits(tmp_path, monkeypatch):
    """A grid whose measured plans differ from start to start, and a machine that knows none yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    changes = ["--set", "fluid.n=[96,80]", "--set", "time.end=0.05", "--set", "output.every=0.05"]
    found = []
    for name in ("a", "b"):
        done = command("run", "taylor-green-2d", *STIRRED, *changes, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        found.append(contents(tmp_path / name / "output.h5"))
    assert found[0] == found[1]
    (known,) = (tmp_path / "cache" / "hpcsim" / "wisdom").glob("*.txt")
    before = set(known.read_text().splitlines())
    restart = ["run", "taylor-green-2d", "--restart", "--set", "time.end=0.1"]
    assert command(*restart, "--out", tmp_path / "a", ranks=2).returncode == 0
    assert set(known.read_text().splitlines()) >= before


def test_a_force_that_stops_being_finite_is_named(tmp_path):
    done = command(
        "run", "taylor-green-2d", *SMALL, "--set", "force.body=['log(0.5 - t)', '0']",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 3
    assert "force.body[0] is not finite at x = 0, y = 0, t = 0.5" in done.stdout


def test_what_is_left_out_of_the_start_is_said(tmp_path):
    start = ["--set", "exact={}", "--set", "start.velocity=['sin(x) + sin(y)', '0']"]
    done = command("run", "taylor-green-2d", *SMALL, *start, "--out", tmp_path / "run", ranks=2)
    assert done.returncode == 0, done.stdout
    assert "start.velocity: 50 % of its energy was left out" in done.stdout


def test_last_frame_before_the_end_is_said(tmp_path):
    done = command("run", "taylor-green-2d", "--set", "output.every=0.6", "--dry-run")
    assert "the figures, are those of t = 0.6 s" in done.stdout


def test_controlled_steps_are_counted_and_their_courant_number_recorded(tmp_path):
    changes = {"time.control": "courant", "time.dt": 0.5, "time.scheme": "rk4", "exact": {}}
    changes |= {"output.every": 0.5, "output.fields": []}
    run = hpcsim.run("taylor-green-2d", changes, out=tmp_path / "run", quiet=True)
    assert run.summary["figures"]["controlled_steps"] > 10
    assert 0.4 < run.series["courant"][-1] <= 0.5


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_clear_line(kind, tmp_path):
    changes, expected = BAD[kind]
    options = [part for change in changes for part in ("--set", change)]
    done = command("run", "taylor-green-2d", *options, "--out", tmp_path / "run", ranks=2)
    assert done.returncode == 2, done.stdout
    lines = messages(done)
    assert any(expected in line for line in lines), lines
    assert not (tmp_path / "run").exists()
