"""The flow against exact solutions: discrete decay, temporal orders, energy, forces, pressure."""

import tracemalloc

import numpy as np
import pytest

from hpcsim.fluid import kernels
from hpcsim.fluid.fields import FormulaForce, random_velocity, shells, spectrum
from hpcsim.fluid.manufactured import RandomFlow
from hpcsim.fluid.operators import OPERATORS
from hpcsim.fluid.stepper import AdditiveStepper
from hpcsim.formula import Formula
from hpcsim.parallel.ranks import Ranks
from hpcsim.time.tableaux import ADDITIVE, EXPLICIT
from tests.fluid.flows import make_flow, pair_of, random_solenoidal, taylor_green

NU, DT, STEPS = 0.05, 0.02, 50


def decay(z, name):
    """Factor per step of y' = z y / dt, implicit, by the tableau alone."""
    pair = pair_of(name).closed()
    a = pair.a_implicit
    stages = np.linalg.solve(np.eye(len(a)) - z * a, np.ones(len(a)))
    return stages[-1]


@pytest.mark.parametrize("operators", OPERATORS)
@pytest.mark.parametrize("scheme", [*ADDITIVE, "rk3", "rk4"])
def test_taylor_green_decays_at_exactly_the_discrete_rate(operators, scheme):
    """u keeps its shape and loses R(−ν λ_h dt) per step, R the scheme's own factor."""
    flow = make_flow((32, 32), operators, NU)
    start = taylor_green(flow)
    u_hat = flow.coefficients(start)
    stepper = AdditiveStepper(flow, pair_of(scheme))
    for step in range(STEPS):
        stepper.step(u_hat, step * DT, DT)
    h = 2 * np.pi / 32
    rate = {
        "centred": 4 * (1 - np.cos(h)) / h**2,
        "fourth": (15 - 16 * np.cos(h) + np.cos(2 * h)) / (3 * h**2),
        "spectral": 2.0,
    }[operators]
    factor = decay(-NU * rate * DT, scheme) ** STEPS
    np.testing.assert_allclose(flow.velocity(u_hat), factor * start, rtol=0, atol=1e-12)


def test_implicit_euler_decay_has_the_reference_value():
    """ν = 0.05, dt = 0.02, 50 steps on 32 × 32, centred: 0.9052176119812693."""
    flow = make_flow((32, 32), "centred", NU)
    start = taylor_green(flow)
    u_hat = flow.coefficients(start)
    stepper = AdditiveStepper(flow, ADDITIVE["euler"])
    for step in range(STEPS):
        stepper.step(u_hat, step * DT, DT)
    u = flow.velocity(u_hat)
    assert (u * start).sum() / (start**2).sum() == pytest.approx(0.9052176119812693, abs=1e-14)


@pytest.mark.parametrize("operators", ["centred", "fourth"])
@pytest.mark.parametrize("n", [(8, 6, 10), (7, 5, 9), (8, 6)])
def test_an_implicit_stage_solves_stokes_brinkman(operators, n):
    """(1 − h ν L) u + D p = z, D·u = 0, with every null mode: checked by its residual."""
    flow = make_flow(n, operators, nu=0.7, box=(2.4, 3.0, 2.0)[: len(n)], kept=False)
    z_hat = random_solenoidal(flow, 3)
    u_hat = z_hat.copy()
    h = 0.4
    stepper = AdditiveStepper(flow, ADDITIVE["euler"])
    rate = flow.transform.spectral(flow.dim)
    flow.rate(z_hat, 0.0, rate)
    flow.project(rate)
    stepper.step(u_hat, 0.0, h)
    l0, l1, l2 = flow.symbols.laplacian
    eigenvalue = l0[:, None, None] + l1[:, None] + l2[::2]
    residual = (1 + h * 0.7 * eigenvalue)[:, None] * u_hat - (z_hat + h * rate)
    assert np.abs(residual).max() < 1e-13 * np.abs(z_hat + h * rate).max()
    d = flow.transform.physical(1)
    flow.divergence(u_hat, d)
    assert np.abs(d).max() < 1e-12


def final(flow, scheme, steps, end, u_hat):
    u_hat = u_hat.copy()
    stepper = AdditiveStepper(flow, pair_of(scheme))
    for step in range(steps):
        stepper.step(u_hat, step * end / steps, end / steps)
    return u_hat


@pytest.mark.parametrize("scheme", [*ADDITIVE, *EXPLICIT])
def test_temporal_order_on_a_manufactured_flow(scheme):
    """Errors against the same grid with small steps of ark5 fall with the order of the scheme."""
    order = pair_of(scheme).order
    nu = 0.02
    flow = make_flow((16, 16), "centred", nu, box=(1.0, 1.0), kept=False)
    exact = RandomFlow(flow.grid, 2, 3, 1.0, nu).at(flow.grid.coordinates(0, 16))
    flow.drive(exact)
    start = flow.transform.physical(2)
    exact.velocity(0.0, start)
    u_hat = flow.coefficients(start)
    flow.project(u_hat)
    end = 0.25
    truth = final(flow, "ark5", 400, end, u_hat)
    steps = {1: 80, 2: 40, 3: 20, 4: 20, 5: 16}[order]
    coarse, fine = (
        np.abs(final(flow, scheme, count, end, u_hat) - truth).max() for count in (steps, 2 * steps)
    )
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("operators", OPERATORS)
def test_energy_is_kept_without_viscosity_to_the_order_of_the_scheme(operators):
    flow = make_flow((12, 10, 8), operators)
    u_hat = random_velocity(flow, 0.5, 2.0, 1, Ranks.alone())
    before = flow.energies(u_hat)[0]
    errors = []
    for steps in (20, 40):
        after = final(flow, "rk4", steps, 1.0, u_hat)
        errors.append(abs(flow.energies(after)[0] / before - 1))
    assert np.log2(errors[0] / errors[1]) > 4 - 0.3
    assert errors[1] < 1e-3


@pytest.mark.parametrize("operators", OPERATORS)
@pytest.mark.parametrize("dim", [2, 3])
def test_account_of_energy_closes_with_force_and_viscosity(operators, dim):
    """K + dissipated − work stays: to the order of ark4."""
    n = (12, 10, 8)[:dim]
    texts = ("sin(x + y)*cos(3*t)", "cos(x)*t", "sin(x)")[:dim]
    names = (*("x", "y", "z")[:dim], "t")
    formulas = [Formula.parse(text, names) for text in texts]
    flow = make_flow(n, operators, nu=0.1, kept=False, density=2.0)
    flow.drive(FormulaForce(formulas, [], flow.grid.coordinates(0, n[0]), flow))
    imbalances = []
    for steps in (20, 40):
        u_hat = random_velocity(flow, 0.5, 2.0, 1, Ranks.alone())
        stepper = AdditiveStepper(flow, ADDITIVE["ark4"])
        before, account = flow.energies(u_hat)[0], 0.0
        for step in range(steps):
            stepper.step(u_hat, step / steps, 1 / steps)
            account += stepper.dissipated - stepper.worked
        imbalances.append(abs(flow.energies(u_hat)[0] + account - before) / before)
    assert imbalances[1] < 1e-6
    assert np.log2(imbalances[0] / imbalances[1]) > 3.5


@pytest.mark.parametrize("operators", OPERATORS)
def test_a_kept_mean_flow_gets_no_work(operators):
    """u = 1 + sin y with f = (0.5, 0) and the mean kept: no work, only viscosity takes energy."""
    flow = make_flow((8, 12), operators, nu=0.1, density=2.0)
    names = ("x", "y", "t")
    formulas = [Formula.parse(text, names) for text in ("0.5", "0")]
    flow.drive(FormulaForce(formulas, [], flow.grid.coordinates(0, 8), flow))
    _, y = flow.grid.coordinates(0, 8)
    u = flow.transform.physical(2)
    u[0] = 1 + np.sin(y)
    u_hat = flow.coefficients(u)
    before, account = flow.energies(u_hat)[0], 0.0
    stepper = AdditiveStepper(flow, ADDITIVE["ark4"])
    for step in range(20):
        stepper.step(u_hat, step / 20, 1 / 20)
        account += stepper.dissipated - stepper.worked
    assert flow.energies(u_hat)[0] + account == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize("operators", OPERATORS)
def test_pressure_of_taylor_green(operators):
    """p = (cos 2x + cos 2y)/4 up to the factor that the stencils of the skew form give it."""
    n = 32
    flow = make_flow((n, n), operators, density=3.0)
    u_hat = flow.coefficients(taylor_green(flow))
    p = flow.transform.physical(1)
    flow.pressure(u_hat, 0.0, p)
    entry, h = OPERATORS[operators], 2 * np.pi / n
    s1, s2 = entry.gradient_symbol(np.array([1, 2]), n, h)
    factor = 1.0 if entry.truncated else (s1 + s2 / 2) / s2
    x, y = flow.grid.coordinates(0, n)
    expected = 3.0 * factor / 4 * (np.cos(2 * x) + np.cos(2 * y))
    np.testing.assert_allclose(p[0], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("operators", ["centred", "spectral"])
def test_mean_flow_is_kept_or_driven_by_the_mean_force(kept, operators):
    """f = (3, 0) with density 2 gives the box 1.5 m/s², or nothing."""
    formulas = [Formula.parse(text, ("x", "y", "t")) for text in ("3", "0")]
    flow = make_flow((8, 8), operators, nu=0.1, density=2.0, kept=kept)
    flow.drive(FormulaForce(formulas, [], flow.grid.coordinates(0, 8), flow))
    u_hat = final(flow, "ars222", 10, 0.5, flow.transform.spectral(2))
    x, y, z = flow.symbols.mean
    np.testing.assert_allclose(u_hat[x, :, y, z], [0.0 if kept else 0.75, 0.0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("operators", OPERATORS)
def test_couple_acts_as_half_its_curl(operators):
    """m = (0, 0, sin x cos y): the force is ½ (∂_y m, −∂_x m, 0) by the operators."""
    n = (12, 8, 6)
    names = ("x", "y", "z", "t")
    couple = [Formula.parse(text, names) for text in ("0", "0", "sin(x)*cos(y)")]
    flow = make_flow(n, operators)
    points = flow.grid.coordinates(0, n[0])
    force = FormulaForce([], couple, points, flow)
    f = flow.transform.physical(3)
    force.fill(0.0, f, f)
    entry = OPERATORS[operators]
    sx, sy = (
        entry.gradient_symbol(np.array([1]), k, h)[0]
        for k, h in zip(n[:2], flow.grid.spacing, strict=False)
    )
    x, y, _ = points
    expected = np.zeros_like(f)
    expected[0] = -0.5 * sy * np.sin(x) * np.sin(y)
    expected[1] = -0.5 * sx * np.cos(x) * np.cos(y)
    np.testing.assert_allclose(f, expected, rtol=0, atol=1e-14)


def test_couple_in_the_plane_is_that_of_space():
    """2D: m(x, y) about z gives the first two components of the force in 3D."""
    text = "sin(x)*cos(y) + cos(2*x)"
    flat, deep = make_flow((12, 8), "centred"), make_flow((12, 8, 4), "centred")
    forces = []
    for flow, names, texts in (
        (flat, ("x", "y", "t"), [text]),
        (deep, ("x", "y", "z", "t"), ["0", "0", text]),
    ):
        couple = [Formula.parse(one, names) for one in texts]
        force = FormulaForce([], couple, flow.grid.coordinates(0, 12), flow)
        f = flow.transform.physical(flow.dim)
        force.fill(0.0, f, f)
        forces.append(f)
    np.testing.assert_allclose(forces[0][:, :, 0], forces[1][:2, :, :, 0], rtol=0, atol=1e-14)
    assert np.abs(forces[0]).max() > 0.1


def test_random_velocity_has_its_spectrum_and_is_solenoidal():
    flow = make_flow((24, 20, 16), "spectral")
    u_hat = random_velocity(flow, 0.7, 3.0, 5, Ranks.alone())
    number, k = shells(flow)
    energy = spectrum(flow, u_hat, number, len(k), Ranks.alone())
    assert energy.sum() == pytest.approx(0.7, rel=1e-12)
    ratio = energy[4] / energy[2]
    assert ratio == pytest.approx((4 / 2) ** 4 * np.exp(-2 * (16 - 4) / 9), rel=1e-10)
    u = flow.velocity(u_hat)
    assert 0.5 * (u**2).sum() / flow.transform.points == pytest.approx(0.7, rel=1e-12)
    d = flow.transform.physical(1)
    flow.divergence(u_hat, d)
    assert np.abs(d).max() < 1e-12
    steep = random_velocity(flow, 0.7, 0.01, 5, Ranks.alone())  # all in the lowest shell
    assert spectrum(flow, steep, number, len(k), Ranks.alone())[1] == pytest.approx(0.7, rel=1e-12)
    other = random_velocity(flow, 0.7, 3.0, 6, Ranks.alone())
    assert np.abs(other - u_hat).max() > 1e-2


def test_manufactured_force_makes_the_flow_exact():
    """f − ρ(u_t + u·∇u) − ∇p + μΔu = 0, by central differences in space and time."""
    flow = make_flow((4, 4, 4), "centred", box=(1.0, 1.2, 0.9))
    eps = 1e-4
    rng = np.random.default_rng(1)
    shape = (5, 4, 3)
    base = [rng.uniform(0, 1, n).reshape(np.roll((-1, 1, 1), a)) for a, n in enumerate(shape)]
    made = RandomFlow(flow.grid, 3, 11, density=2.0, viscosity=0.3)

    def at(shift, t):
        made.at([x + d for x, d in zip(base, shift, strict=True)])
        u, p, f = np.empty((3, *shape)), np.empty(shape), np.empty((3, *shape))
        made.velocity(t, u)
        made.pressure(t, p)
        made.fill(t, u, f)
        return u, p, f

    t = 0.37
    u, _, f = at((0, 0, 0), t)
    expected = 2.0 * (at((0, 0, 0), t + eps)[0] - at((0, 0, 0), t - eps)[0]) / (2 * eps)
    div = 0.0
    for axis in range(3):
        shift = np.eye(3)[axis] * eps
        (up, pp, _), (um, pm, _) = at(shift, t), at(-shift, t)
        expected += 2.0 * u[axis] * (up - um) / (2 * eps) - 0.3 * (up - 2 * u + um) / eps**2
        expected[axis] += (pp - pm) / (2 * eps)
        div = div + (up - um)[axis] / (2 * eps)
    scale = np.abs(f).max()
    assert np.abs(f - expected).max() < 1e-4 * scale  # second differences: ε/eps² and eps²
    assert np.abs(div).max() < 1e-4


def test_the_error_estimate_is_of_the_embedded_order_and_can_be_undone():
    flow = make_flow((16, 16), "centred", nu=0.05)
    start = random_velocity(flow, 0.5, 2.0, 1, Ranks.alone())
    for scheme in ("ark3", "ark4"):
        errors = []
        for h in (0.1, 0.05):
            u_hat = start.copy()
            stepper = AdditiveStepper(flow, ADDITIVE[scheme], estimates_error=True)
            stepper.step(u_hat, 0.0, h)
            errors.append(np.sqrt(stepper.error(h)))
            stepper.undo(u_hat)
            np.testing.assert_array_equal(u_hat, start)
        order = np.log2(errors[0] / errors[1])
        assert order == pytest.approx(ADDITIVE[scheme].embedded_order + 1, abs=0.4)


def test_courant_number_counts_all_axes_and_not_a_number_is_infinite():
    u = np.zeros((2, 3, 1, 4))
    u[:, 1, 0, 2] = (-3.0, 2.0)
    assert kernels.largest_courant(u, np.array([10.0, 5.0])) == 40.0
    u[0, 0, 0, 0] = np.nan
    assert not np.isfinite(kernels.largest_courant(u, np.array([10.0, 5.0])))


@pytest.mark.parametrize("operators", OPERATORS)
@pytest.mark.parametrize("force", ["none", "manufactured", "formulas"])
@pytest.mark.parametrize("scheme", ["ars222", "rk4", "ark4"])
def test_steps_allocate_nothing_that_grows_with_the_grid(operators, force, scheme):
    """What is in use at any moment of a step exceeds what was before by less than a plane.

    (Arrays that compiled loops make for themselves are not seen; there are only small ones.)
    """
    n = (40, 40, 40)
    flow = make_flow(n, operators, nu=0.1)
    points = flow.grid.coordinates(0, n[0])
    if force == "manufactured":
        flow.drive(RandomFlow(flow.grid, 2, 3, 1.0, 0.1).at(points))
    elif force == "formulas":
        names = ("x", "y", "z", "t")
        body = [Formula.parse(text, names) for text in ("t*sin(x)", "cos(y)", "1")]
        couple = [Formula.parse(text, names) for text in ("t", "0", "sin(x)")]
        flow.drive(FormulaForce(body, couple, points, flow))
    stepper = AdditiveStepper(flow, pair_of(scheme), estimates_error=scheme == "ark4")
    u_hat = random_velocity(flow, 0.5, 2.0, 1, Ranks.alone())

    def work():
        stepper.step(u_hat, 0.1, 0.01)
        if scheme == "ark4":
            stepper.error(0.01)
            stepper.undo(u_hat)

    work()  # compiles
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * n[1] * n[2]
