"""Heavy symmetric top on a fixed tip.

The frame of the state follows the axis but not the spin: its angular velocity is (w1, w2, 0) in its
own axes, so that a fast spin asks for no small step. With I about the tip, I3 about the axis and
k = (g1, g2, g3) the vertical in that frame:

    q'  = 1/2 q (0, w1, w2, 0)
    w1' = (m g d g2 - I3 w3 w2) / I,    w2' = (-m g d g1 + I3 w3 w1) / I,    w3' = 0
    spin_angle' = w3                    (the body is turned by it about the axis)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsim.case.schema import Table, key, table
from hpcsim.compiled import inlined
from hpcsim.ensemble import engine
from hpcsim.ensemble.engine import LANES
from hpcsim.ensemble.model import Ensemble, EnsembleCase, Invariant
from hpcsim.ensemble.parameters import AnyValue, Parameter, PolarAngle, PositiveValue

if TYPE_CHECKING:
    from hpcsim.output.run import Run


def value(number: float) -> Parameter:
    """A default that is the same for every member."""
    return Parameter("number", (number,))


def largest(parameter: Parameter) -> float:
    """Bound of the magnitude of a parameter over the members."""
    return max(abs(number) for number in parameter.extent)


class Top(Table):
    """Table [top]; the defaults are a cone of 100 kg/m³, 0.15 m high, base radius 0.05 m."""

    mass: PositiveValue = key(value(0.03926990816987242), "mass", "kg")
    distance: PositiveValue = key(value(0.1125), "distance from the tip to the centre of mass", "m")
    inertia_transverse: PositiveValue = key(
        value(5.448699758569799e-04), "moment of inertia across the axis, about the tip", "kg m2"
    )
    inertia_axial: PositiveValue = key(
        value(2.9452431127404317e-05), "moment of inertia about the axis", "kg m2"
    )
    gravity: AnyValue = key(value(9.81), "acceleration of gravity, downward", "m/s2")


class Start(Table):
    """Table [start]."""

    tilt: PolarAngle = key(
        value(math.pi / 6), "angle between the axis and the upward vertical", "rad"
    )
    spin: AnyValue = key(value(600.0), "angular velocity about the axis", "rad/s")
    precession: AnyValue = key(value(0.0), "rate of turning about the vertical", "rad/s")
    nutation: AnyValue = key(value(0.0), "rate of tilting", "rad/s")


class GyroscopeCase(EnsembleCase):
    """The case of an ensemble of heavy tops."""

    top: Top = table(Top, "The top; every number may vary over the members")
    start: Start = table(Start, "How it starts; every number may vary over the members")


@inlined
def start(given: np.ndarray, y: np.ndarray) -> None:
    """State from (tilt, spin, precession, nutation); the axis leans to −y."""
    for i in range(LANES):
        tilt = given[0, i]
        y[0, i] = math.cos(0.5 * tilt)
        y[1, i] = math.sin(0.5 * tilt)
        y[2, i] = 0.0
        y[3, i] = 0.0
        y[4, i] = given[3, i]
        y[5, i] = given[2, i] * math.sin(tilt)
        y[6, i] = given[1, i]
        y[7, i] = 0.0


@inlined
def rate(t: float, y: np.ndarray, p: np.ndarray, dy: np.ndarray) -> None:
    """The equations above; p = (I3/I, 2 m g d/I, …)."""
    for i in range(LANES):
        q0, q1, q2, q3 = y[0, i], y[1, i], y[2, i], y[3, i]
        w1, w2, w3 = y[4, i], y[5, i], y[6, i]
        half1, half2 = 0.5 * w1, 0.5 * w2
        gyration = p[0, i] * w3
        weight = p[1, i]
        dy[0, i] = -(q1 * half1 + q2 * half2)
        dy[1, i] = q0 * half1 - q3 * half2
        dy[2, i] = q0 * half2 + q3 * half1
        dy[3, i] = q1 * half2 - q2 * half1
        dy[4, i] = weight * (q2 * q3 + q0 * q1) - gyration * w2
        dy[5, i] = gyration * w1 - weight * (q1 * q3 - q0 * q2)
        dy[6, i] = 0.0
        dy[7, i] = w3


@inlined
def observe(y: np.ndarray, p: np.ndarray, values: np.ndarray, scales: np.ndarray) -> None:
    """Energy, vertical angular momentum and spin, with their scales; p = (…, I, I3, m g d)."""
    for i in range(LANES):
        q0, q1, q2, q3 = y[0, i], y[1, i], y[2, i], y[3, i]
        w1, w2, w3 = y[4, i], y[5, i], y[6, i]
        across, axial, moment = p[2, i], p[3, i], p[4, i]
        g1 = 2 * (q1 * q3 - q0 * q2)
        g2 = 2 * (q2 * q3 + q0 * q1)
        g3 = q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3
        kinetic = 0.5 * (across * (w1 * w1 + w2 * w2) + axial * w3 * w3)
        potential = moment * g3
        values[0, i] = kinetic + potential
        values[1, i] = across * (w1 * g1 + w2 * g2) + axial * w3 * g3
        values[2, i] = w3
        scales[0, i] = kinetic + abs(potential)
        whole = across * math.sqrt(w1 * w1 + w2 * w2) + axial * abs(w3)
        vertical = abs(values[1, i])
        scales[1, i] = (
            vertical if vertical > 1e-6 * whole else whole
        )  # Lz may be 0 but for rounding
        scales[2, i] = abs(w3)


class Gyroscope(Ensemble):
    """An ensemble of heavy symmetric tops on fixed tips."""

    schema = GyroscopeCase
    dofs = ("q0", "q1", "q2", "q3", "w1", "w2", "w3", "spin_angle")
    dof_units = "1, 1, 1, 1, rad/s, rad/s, rad/s, rad"
    invariants = (
        Invariant("energy", "J", running=True),
        Invariant("lz", "kg m2/s"),
        Invariant("spin", "rad/s"),
    )
    start_members = staticmethod(engine.make_start(start))
    advance_members = staticmethod(engine.make_advance(rate))
    observe_members = staticmethod(engine.make_observe(observe))

    @classmethod
    def given(cls, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Columns tilt, spin, precession, nutation."""
        names = ("tilt", "spin", "precession", "nutation")
        return np.column_stack([values[f"start.{name}"] for name in names])

    @classmethod
    def coefficients(cls, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Columns I3/I, 2 m g d/I, I, I3, m g d."""
        across, axial = values["top.inertia_transverse"], values["top.inertia_axial"]
        moment = values["top.mass"] * values["top.gravity"] * values["top.distance"]
        return np.column_stack([axial / across, 2 * moment / across, across, axial, moment])

    @classmethod
    def time_limits(cls, case: Any) -> dict[str, float]:
        """A hundredth of the shortest of the periods in play, bounded over the members."""
        top, start = case.top, case.start
        least = min(top.inertia_transverse.extent)
        moment = largest(top.mass) * largest(top.gravity) * largest(top.distance)
        rates = {
            "nutation period": largest(top.inertia_axial) * largest(start.spin) / least,
            "swinging period": math.sqrt(2 * moment / least),
            "turn at the starting rates": math.hypot(
                largest(start.precession), largest(start.nutation)
            ),
        }
        return {
            f"a hundredth of the shortest {name}": 2 * math.pi / (100 * rate)
            for name, rate in rates.items()
            if rate > 0
        }

    def figures(self, run: Run) -> dict[str, float]:
        """Drifts, and nutation and precession against the exact integrals."""
        from hpcsim.models.tops.nutation import nutation_figures

        return super().figures(run) | nutation_figures(self, run)

    @staticmethod
    def draw_pictures(run: Run, figure: Any) -> None:
        """Axis on the sphere, nutation in time, drifts."""
        from hpcsim.models.tops.pictures import draw_pictures

        draw_pictures(run, figure)
