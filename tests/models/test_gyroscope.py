"""The heavy top against its exact integrals and published-style reference numbers.

Reference: a cone of 100 kg/m³, height 0.15 m, base radius 0.05 m, g = 9.81 m/s².
"""

import math

import numpy as np
import pytest

import hpcsim
from hpcsim.job import new_job
from hpcsim.models.tops import nutation
from hpcsim.models.tops.gyroscope import Gyroscope, Start, Top
from hpcsim.parallel.ranks import Ranks

#: spin, tilt, precession → tilt range, nutation period, precession per period
MOTIONS = {
    (60.0, math.pi / 6, 0.0): (0.523598776, 2.788907961, 0.623002299, 3.363951939),
    (600.0, math.pi / 6, 0.0): (0.523598776, 0.617508873, 0.223770005, 0.587632356),
    (600.0, 0.3, 5.0): (0.249427188, 0.300000000, 0.229917405, 0.611830552),
}


def make(**changes):
    keys = {"ensemble.members": 1, "start.spin": 600.0, "start.tilt": math.pi / 6}
    model = Gyroscope(new_job("gyroscope", keys | changes, 1).case, Ranks.world())
    model.prepare()
    return model


def rows(model):
    return model.state()["members"].local.copy()


def test_default_top_is_the_cone():
    mass = math.pi * 100 * 0.05**2 * 0.15 / 3
    top = Top()
    assert top.mass.values[0] == pytest.approx(mass, rel=1e-15)
    assert top.distance.values[0] == pytest.approx(0.75 * 0.15, rel=1e-15)
    across = mass * (3 / 20 * 0.05**2 + 3 / 5 * 0.15**2)
    assert top.inertia_transverse.values[0] == pytest.approx(across, rel=1e-15)
    assert top.inertia_axial.values[0] == pytest.approx(0.3 * mass * 0.05**2, rel=1e-15)


def test_start_is_the_motion_asked_for():
    model = make(**{"start.tilt": 0.7, "start.precession": 2.0, "start.nutation": -1.5})
    state = rows(model)
    direction = nutation.axis(state)[0]
    np.testing.assert_allclose(direction, [0, -math.sin(0.7), math.cos(0.7)], atol=1e-15)
    # a short step: the axis moves with the rates of tilt and azimuth asked for
    step = 1e-6
    model.case = model.case.model_copy(
        update={"time": model.case.time.model_copy(update={"dt": step})}
    )
    model.advance(0, 1)
    later = nutation.axis(rows(model))[0]
    tilt_rate = (math.acos(later[2]) - 0.7) / step
    azimuth_rate = math.atan2(later[0], -later[1]) / step
    assert tilt_rate == pytest.approx(-1.5, rel=1e-4)
    assert azimuth_rate == pytest.approx(2.0, rel=1e-4)


def test_equations_equal_those_in_euler_angles():
    """The quaternion form follows the heavy-top equations in (psi, theta), integrated by itself."""
    spin, tilt = 600.0, 0.5
    model = make(**{"start.spin": spin, "start.tilt": tilt, "start.precession": 3.0})
    _, weight, across, axial, moment = model.coefficients(model.values)[0]
    assert weight == pytest.approx(2 * moment / across)

    def rate(y):
        _, theta, psi_rate, theta_rate = y
        s, c = math.sin(theta), math.cos(theta)
        phi_rate = spin - psi_rate * c
        return np.array(
            [
                psi_rate,
                theta_rate,
                theta_rate
                * ((axial - 2 * across) * psi_rate * c + axial * phi_rate)
                / (across * s),
                (moment * s + psi_rate * s * ((across - axial) * psi_rate * c - axial * phi_rate))
                / across,
            ]
        )

    y, dt = np.array([0.0, tilt, 3.0, 0.0]), model.case.time.dt
    for _ in range(2000):
        k1 = rate(y)
        k2 = rate(y + dt / 2 * k1)
        k3 = rate(y + dt / 2 * k2)
        k4 = rate(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    model.advance(0, 2000)
    psi, theta = y[:2]
    expected = [
        math.sin(theta) * math.sin(psi), -math.sin(theta) * math.cos(psi), math.cos(theta)
    ]  # fmt: skip
    # both are RK4 at z = 0.016: their errors over 1 s are below 1e-8
    np.testing.assert_allclose(nutation.axis(rows(model))[0], expected, atol=1e-8)


@pytest.mark.parametrize("motion", MOTIONS)
def test_exact_integrals_give_the_reference_numbers(motion):
    spin, tilt, precession = motion
    model = make(**{"start.spin": spin, "start.tilt": tilt, "start.precession": precession})
    constants = nutation.integrals(model.coefficients(model.values), rows(model))
    found = nutation.exact(constants)
    values = [found.lowest[0], found.highest[0], found.period[0], found.precession[0]]
    np.testing.assert_allclose(values, MOTIONS[motion], atol=6e-10)  # nine printed digits


@pytest.mark.parametrize("motion", MOTIONS)
def test_a_run_shows_the_reference_numbers(motion, tmp_path):
    """Figures of a run agree with the integrals to what frames at 1/100 period resolve."""
    spin, tilt, precession = motion
    changes = {
        "ensemble.members": 1,
        "start.spin": spin,
        "start.tilt": tilt,
        "start.precession": precession,
        "time.dt": 2.5e-4,
        "output.every": 2e-3,
    }
    figures = hpcsim.run("gyroscope", changes, out=tmp_path / "run", quiet=True).summary["figures"]
    found = [
        figures[name]
        for name in (
            "nutation_lowest",
            "nutation_highest",
            "nutation_period",
            "precession_per_nutation",
        )
    ]
    np.testing.assert_allclose(found, MOTIONS[motion], rtol=1e-6)
    assert figures["drift_energy"] < 1e-9
    assert figures["drift_lz"] < 1e-9
    assert figures["drift_spin"] == 0
    for name in (
        "nutation_period_error",
        "precession_per_nutation_error",
        "nutation_highest_error",
    ):
        assert figures[name] < 1e-6


def test_steady_precession_keeps_the_tilt():
    """The two rates that solve I cos(tilt) p² − I3 w3 p + m g d = 0 at tilt 0.5, spin 600."""
    for rate in (2.641270550, 34.315289255):
        model = make(**{"start.tilt": 0.5, "start.precession": rate})
        for _ in range(10):
            model.advance(0, 100)
            tilt = math.acos(nutation.axis(rows(model))[0, 2])
            assert tilt == pytest.approx(0.5, abs=1e-8)  # the rates have nine digits


@pytest.mark.parametrize(("spin", "falls"), [(320.0, True), (340.0, False)])
def test_sleeping_top_falls_below_the_threshold_only(spin, falls):
    """Upright motion is stable above 329.986 rad/s."""
    model = make(**{"start.spin": spin, "start.tilt": 1e-4})
    tilts = []
    for _ in range(80):
        model.advance(0, 100)
        tilts.append(math.acos(min(1.0, nutation.axis(rows(model))[0, 2])))
    assert (max(tilts) > 0.1) == falls


def test_energy_error_falls_with_the_fourth_power_or_faster():
    drifts = []
    for dt in (4e-3, 2e-3):
        model = make(**{"time.dt": dt, "output.every": 0.02})
        model.advance(0, round(1.0 / dt))
        model.frame()
        drifts.append(model._drift()[0])
    assert 3.9 < math.log2(drifts[0] / drifts[1]) < 6


def test_drift_is_relative_to_its_scale_and_never_divides_by_zero():
    model = make(**{"start.spin": 0.0, "start.tilt": 0.5, "top.gravity": 0.0})
    model.advance(0, 100)
    model.frame()
    assert np.isfinite(model._drift()).all()


def test_names_of_parameters_are_unique():
    """They become datasets side by side."""
    assert not set(Top.model_fields) & set(Start.model_fields)


def test_auto_step_resolves_the_fastest_motion():
    job = new_job("gyroscope", {"time.dt": "auto"}, 1)
    nutation_rate = 2.9452431127404317e-05 * 800 / 5.448699758569799e-04
    assert job.schedule.dt <= 2 * math.pi / nutation_rate / 100
    assert job.schedule.dt == job.case.time.dt


def test_a_vertical_momentum_of_zero_has_a_sensible_scale():
    """A horizontal top has L_z = 0 but for rounding: its drift is measured by the whole L."""
    model = make(**{"start.tilt": math.pi / 2})
    model.advance(0, 2000)
    model.frame()
    assert model._drift()[1] < 1e-10


def test_without_gravity_there_is_no_nutation_to_report(tmp_path):
    changes = {"top.gravity": 0.0, "time.end": 0.5}
    figures = hpcsim.run("gyroscope", changes, out=tmp_path / "run", quiet=True).summary["figures"]
    assert not any(name.startswith("nutation") for name in figures)


def test_a_run_shorter_than_a_nutation_claims_nothing_about_it(tmp_path):
    changes = {"time.end": 0.1, "output.every": 0.005}
    figures = hpcsim.run("gyroscope", changes, out=tmp_path / "run", quiet=True).summary["figures"]
    assert not any(name.startswith("nutation") for name in figures)
