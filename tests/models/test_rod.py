"""Rods in a flow as runs: energy, ranks, restart, periods of the box, bad input."""

import numpy as np
import pytest

import hpcsim
from hpcsim.job import new_job
from hpcsim.models.rod.model import RodInFluid
from hpcsim.parallel.ranks import Ranks
from tests.launch import contents, messages
from tests.launch import hpcsim as command

SMALL = {
    "fluid.n": [16, 16, 16],
    "rod.nodes": 13,
    "time.dt": 0.05,
    "time.end": 1.0,
    "output.every": 0.25,
    "fluid.reproducible": True,
    "parameters.tau": 250.0,
}


def options(changes):
    return [part for key, value in changes.items() for part in ("--set", f"{key}={written(value)}")]


def written(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_energy_is_accounted_for_to_second_order(tmp_path):
    """E + K + D stays: the error falls with dt² for the midpoint."""
    errors = []
    for name, dt in (("coarse", 0.05), ("fine", 0.025)):
        run = hpcsim.run("twisted-rod", SMALL | {"time.dt": dt}, out=tmp_path / name, quiet=True)
        errors.append(run.summary["figures"]["energy_balance_error"])
        total = run.series["elastic_energy"][:] + run.series["kinetic_energy"][:]
        assert (np.diff(total) < 0).all()
    assert errors[1] < 2e-3
    assert np.log2(errors[0] / errors[1]) > 1.7


def test_equal_on_any_number_of_ranks(tmp_path):
    """Rounding only: 1e-9 of the rod's length after 20 steps, which grow what differs by 1e-16."""
    for ranks in (1, 2, 3, 4):
        done = command(
            "run", "twisted-rod", *options(SMALL), "--out", tmp_path / str(ranks), ranks=ranks
        )
        assert done.returncode == 0, done.stderr
    alone = hpcsim.open_run(tmp_path / "1")
    moved = np.abs(alone["rod/r"][-1] - alone["rod/r"][0]).max()
    assert moved > 1e-5
    for ranks in (2, 3, 4):
        other = hpcsim.open_run(tmp_path / str(ranks))
        for name in ("rod/r", "rod/R"):
            difference = np.abs(other[name][:] - alone[name][:]).max()
            assert difference < 1e-9 * (0.05 if name == "rod/r" else 1.0)


@pytest.mark.parametrize("bending", ["couple", "force"])
def test_restart_gives_the_same_bits(bending, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run = ["run", "twisted-rod", *options(SMALL), "--set", f"rod.bending={bending}"]
    assert command(*run, "--out", whole, ranks=2).returncode == 0
    assert command(*run, "--set", "time.end=0.5", "--out", cut, ranks=2).returncode == 0
    again = ["run", "twisted-rod", "--restart", "--set", "time.end=1.0", "--out", cut]
    done = command(*again, ranks=2)
    assert done.returncode == 0, done.stderr
    assert contents(cut / "output.h5") == contents(whole / "output.h5")


@pytest.mark.parametrize("coupling", ["midpoint", "forward-backward"])
def test_a_state_taken_over_in_mid_run_gives_the_same_bits(coupling):
    """As after a divergence: the step of the rods that was under way is forgotten."""
    ranks = Ranks.alone()
    model = RodInFluid(new_job("twisted-rod", SMALL | {"time.coupling": coupling}).case, ranks)
    model.begin()
    start = {name: share.local.copy() for name, share in model.state().items()}
    found = []
    for steps in (2, 2):
        model.restore(start)
        model.advance(0, steps)
        found.append(model.state()["r"].local.copy())
        model.advance(steps, 3)  # leaves a step of the rods under way
    np.testing.assert_array_equal(found[0], found[1])


def test_a_rod_across_the_boundary_is_the_same(tmp_path):
    """The rod shifted by grid points so that it lies across the boundary: the same to rounding."""
    found = []
    for name, z in (("inside", 0.05), ("across", 0.1)):
        centre = ["0.05", "0.05", f"{z} + (1 + eps)*(s - 0.025)"]
        changes = SMALL | {"rod.centre": centre}
        run = hpcsim.run("twisted-rod", changes, out=tmp_path / name, quiet=True)
        found.append(run["rod/r"][-1] - [0, 0, z])
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


def test_momentum_of_the_box_stays(tmp_path):
    """A free rod exerts no net force, even where the mean flow may be driven."""
    changes = SMALL | {"fluid.mean_flow": "driven"}
    run = hpcsim.run("twisted-rod", changes, out=tmp_path / "run", quiet=True)
    speed = np.sqrt(2 * run.series["kinetic_energy"][-1] / (1000 * 0.1**3))
    assert np.abs(run.series["momentum"][:]).max() < 1e-12 * 1000 * 0.1**3 * speed


def test_rods_of_different_kinds_share_a_flow(tmp_path):
    """Two filaments, far apart, each with its own kernel and way of bending, in one file."""
    first = {"nodes": 11, "length": 0.3, "bend": 0.002, "stretch": 5.0, "position": [0.25, 0.5]}
    second = first | {"nodes": 13, "position": [0.75, 0.5], "kernel": "s6", "bending": "force"}
    bent = [table | {"rest_curvature": ["6*sin(10*s)"]} for table in (first, second)]
    changes = {"rod": bent, "fluid.n": [32, 32], "time.end": 0.2, "output.every": 0.1}
    runs = [
        hpcsim.run("filament-2d", changes, out=tmp_path / "both", quiet=True),
        hpcsim.run("filament-2d", changes | {"rod": bent[:1]}, out=tmp_path / "one", quiet=True),
    ]
    assert runs[0]["rod/start"][:].tolist() == [0, 11]
    assert runs[0]["rod/r"].shape == (3, 24, 2)
    figures = runs[0].summary["figures"]
    assert {"noise_ratio", "noise_ratio_2"} <= set(figures)
    assert 0 <= figures["noise_ratio_2"] < 0.2
    alone, together = runs[1]["rod/r"][-1], runs[0]["rod/r"][-1, :11]
    moved = np.abs(alone - runs[1]["rod/r"][0]).max()
    assert 0 < np.abs(together - alone).max() < 0.5 * moved  # the other one is felt, but far away


@pytest.mark.parametrize(("bending", "left"), [("couple", 0.5), ("force", 0.05)])
def test_a_filament_in_the_plane_straightens(bending, left, tmp_path):
    """It loses its energy, keeps its length, and its frames are rotations of the plane.

    On this coarse grid couples drag a wide blob of fluid along, so it is slower with them.
    """
    changes = {"rod.bending": bending, "fluid.n": [32, 32], "rod.nodes": 21, "time.end": 1.0}
    run = hpcsim.run("filament-2d", changes, out=tmp_path / "run", quiet=True)
    figures = run.summary["figures"]
    assert figures["elastic_energy_final"] < left * figures["elastic_energy_initial"]
    assert figures["energy_balance_error"] < 0.01
    r, frames = run["rod/r"], run["rod/R"]
    assert r.shape[2] == 2
    assert frames.shape[2:] == (2, 2)
    ends = np.linalg.norm(r[:, -1] - r[:, 0], axis=1)
    assert ends[-1] > 1.2 * ends[0]
    lengths = np.linalg.norm(np.diff(r[:], axis=1), axis=2).sum(axis=1)
    assert np.abs(lengths / lengths[0] - 1).max() < 0.02
    square = np.einsum("fnij,fnik->fnjk", frames[:], frames[:])
    np.testing.assert_allclose(square, np.broadcast_to(np.eye(2), square.shape), atol=1e-12)


BAD = {
    "list": ({"rod.bend": [1e-10, 1e-10]}, "rod.bend has 2 entries: must be 3 in 3D"),
    "formula": (
        {"rod.rest_curvature": ["tua", "0", "0"]},
        "rod.rest_curvature[0] = 'tua': column 1: unknown name 'tua'; did you mean tau?",
    ),
    "kernel": ({"rod.kernel": "s7"}, "rod.kernel = 's7': must be one of s3, s4"),
    "kernel wider than the box": ({"rod.dilation": 4}, "reaches 18 points, but fluid.n[0] = 16"),
    "misspelt": ({"rod.nods": 3}, "rod.nods: unknown key; did you mean nodes?"),
    "stiffness": ({"rod.stretch": -1.0}, "rod.stretch = -1"),
    "ring": ({"rod.centre": [], "rod.d1": [], "rod.d2": [], "rod.shape": "ring"}, "closed = true"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_clear_line(kind, tmp_path):
    changes, expected = BAD[kind]
    parts = options({"fluid.n": [16, 16, 16]} | changes)
    done = command("run", "twisted-rod", *parts, "--out", tmp_path / "run")
    assert done.returncode == 2, done.stdout
    assert any(expected in line for line in messages(done)), messages(done)
