"""Nutation and precession of heavy tops: the exact integrals, and what a run shows.

With x = cos(tilt), a = I3 w3/I, b = Lz/I, e = (2E - I3 w3²)/I, f = 2 m g d/I the motion obeys

    x'² = (1 - x²)(e - f x) - (b - a x)²,      psi' = (b - a x)/(1 - x²)

a cubic whose two roots in [-1, 1] bound x; x runs between them and back in one nutation period.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hpcsim.models.tops.gyroscope import Gyroscope
    from hpcsim.output.run import Run

#: Points of the midpoint rule for the integrals over a period, which converges exponentially.
POINTS = 256
#: Frames that a nutation period needs before a run's figures are worth giving.
FEWEST_FRAMES = 10
#: Frames × members that are read at once.
READ_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class Integrals:
    """The constants a, b, e, f of each member, arrays (member)."""

    a: np.ndarray
    b: np.ndarray
    e: np.ndarray
    f: np.ndarray

    def slope(self, x: np.ndarray) -> np.ndarray:
        """x'' = half the derivative of the cubic."""
        return 0.5 * (self.f * (3 * x**2 - 1) - 2 * self.e * x) + self.a * (self.b - self.a * x)

    def precession_rate(self, x: np.ndarray) -> np.ndarray:
        """psi' [rad/s]; not finite when the axis is vertical."""
        return (self.b - self.a * x) / (1 - x**2)


@dataclass(frozen=True)
class Nutation:
    """Range of tilt [rad], period [s] and precession per period [rad], arrays (member)."""

    lowest: np.ndarray
    highest: np.ndarray
    period: np.ndarray
    precession: np.ndarray


def integrals(coefficients: np.ndarray, state: np.ndarray) -> Integrals:
    """Constants of motion from coefficients (member, 5) and state (member, 8) of the gyroscope."""
    ratio, weight, _, _, _ = coefficients.T
    w1, w2, w3 = state[:, 4:7].T
    g1, g2, g3 = vertical(state)
    return Integrals(
        a=ratio * w3,
        b=w1 * g1 + w2 * g2 + ratio * w3 * g3,
        e=w1**2 + w2**2 + weight * g3,
        f=weight,
    )


def vertical(state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The upward vertical in the frame that follows the axis."""
    q0, q1, q2, q3 = np.moveaxis(state[..., :4], -1, 0)
    return (
        2 * (q1 * q3 - q0 * q2),
        2 * (q2 * q3 + q0 * q1),
        q0**2 - q1**2 - q2**2 + q3**2,
    )


def axis(state: np.ndarray) -> np.ndarray:
    """Unit vector along the top's axis in the lab, (…, 3)."""
    q0, q1, q2, q3 = np.moveaxis(state[..., :4], -1, 0)
    parts = (2 * (q1 * q3 + q0 * q2), 2 * (q2 * q3 - q0 * q1), q0**2 - q1**2 - q2**2 + q3**2)
    return np.stack(parts, axis=-1)


def exact(constants: Integrals) -> Nutation:
    """Nutation by the roots of the cubic and two quadratures; NaN without weight."""
    a, b, e = constants.a, constants.b, constants.e
    heavy = constants.f > 0
    f = np.where(heavy, constants.f, 1.0)
    with np.errstate(all="ignore"):
        # x³ + c2 x² + c1 x + c0 by the eigenvalues of its companion matrix
        companion = np.zeros((len(a), 3, 3))
        companion[:, 1, 0] = companion[:, 2, 1] = 1.0
        companion[:, :, 2] = -np.stack(
            [(e - b**2) / f, (2 * a * b - f) / f, -(e + a**2) / f], axis=-1
        )
        x1, x2, x3 = np.sort(np.linalg.eigvals(companion).real, axis=-1).T
        angle = (np.arange(POINTS) + 0.5) * np.pi / POINTS - np.pi / 2
        x = (x1 + x2)[:, None] / 2 + ((x2 - x1) / 2)[:, None] * np.sin(angle)
        seconds = 2 * np.pi / POINTS / np.sqrt(f[:, None] * (x3[:, None] - x))
        turning = (b[:, None] - a[:, None] * x) / (1 - x**2)
        return Nutation(
            lowest=np.where(heavy, np.arccos(np.clip(x2, -1, 1)), np.nan),
            highest=np.where(heavy, np.arccos(np.clip(x1, -1, 1)), np.nan),
            period=np.where(heavy, seconds.sum(axis=1), np.nan),
            precession=np.where(heavy, (seconds * turning).sum(axis=1), np.nan),
        )


def observed(t: np.ndarray, state: np.ndarray, constants: Integrals) -> Nutation:
    """Nutation of each member from frames, t (frame) and state (frame, member, 8).

    Turning points are the zeros of x', found between frames on the cubic through x' and x'' of
    both ends. Values that the frames do not determine are NaN.
    """
    g1, g2, x = vertical(state)
    speed = g1 * state[..., 5] - g2 * state[..., 4]
    slope = constants.slope(x)
    direction = axis(state)
    psi = np.unwrap(np.arctan2(direction[..., 0], -direction[..., 1]), axis=0)
    with np.errstate(all="ignore"):
        turn_rate = constants.precession_rate(x)
    h = np.diff(t)[:, None]
    turning = speed[:-1] * speed[1:] < 0
    at = hermite_zero(speed[:-1], speed[1:], h * slope[:-1], h * slope[1:])
    x_at = hermite(x[:-1], x[1:], h * speed[:-1], h * speed[1:], at)
    psi_at = hermite(psi[:-1], psi[1:], h * turn_rate[:-1], h * turn_rate[1:], at)
    t_at = t[:-1, None] + h * at

    def at_turns(values: np.ndarray, pick: str, where: np.ndarray) -> np.ndarray:
        """The first or last value of each member among its turns, NaN without any."""
        order = where if pick == "first" else where[::-1]
        row = np.argmax(order, axis=0)
        row = row if pick == "first" else len(where) - 1 - row
        return np.where(where.any(axis=0), values[row, np.arange(values.shape[1])], np.nan)

    upright = turning & (slope[:-1] + slope[1:] < 0)  # x largest, tilt smallest
    rounds = np.maximum(upright.sum(axis=0) - 1, 0).astype(float)
    rounds[rounds == 0] = np.nan
    span = at_turns(t_at, "last", upright) - at_turns(t_at, "first", upright)
    swept = at_turns(psi_at, "last", upright) - at_turns(psi_at, "first", upright)
    extremes = np.where(turning, x_at, np.nan)
    highest_x = np.fmax(np.fmax.reduce(extremes, axis=0), x.max(axis=0))
    lowest_x = np.fmin(np.fmin.reduce(extremes, axis=0), x.min(axis=0))
    return Nutation(
        lowest=np.where(rounds > 0, np.arccos(np.clip(highest_x, -1, 1)), np.nan),
        highest=np.where(rounds > 0, np.arccos(np.clip(lowest_x, -1, 1)), np.nan),
        period=span / rounds,
        precession=swept / rounds,
    )


def hermite(
    left: np.ndarray,
    right: np.ndarray,
    left_rise: np.ndarray,
    right_rise: np.ndarray,
    at: np.ndarray,
) -> np.ndarray:
    """Cubic on [0, 1] with given end values and slopes, at a point."""
    return (
        left * (1 + 2 * at) * (1 - at) ** 2
        + right * at**2 * (3 - 2 * at)
        + left_rise * at * (1 - at) ** 2
        - right_rise * at**2 * (1 - at)
    )


def hermite_zero(
    left: np.ndarray, right: np.ndarray, left_rise: np.ndarray, right_rise: np.ndarray
) -> np.ndarray:
    """Where that cubic is zero, by bisection; meaningful where the end values differ in sign."""
    low, high = np.zeros_like(left), np.ones_like(left)
    for _ in range(50):
        middle = 0.5 * (low + high)
        same = hermite(left, right, left_rise, right_rise, middle) * left > 0
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return 0.5 * (low + high)


def blocks(model: Gyroscope, frames: int) -> Iterator[slice]:
    """This rank's members in runs small enough to read with all their frames."""
    step = max(1, READ_AT_ONCE // max(frames, 1))
    for first in range(0, model.count, step):
        yield slice(first, min(first + step, model.count))


def nutation_figures(model: Gyroscope, run: Run) -> dict[str, float]:
    """Nutation of the first member, and the largest error of all members against the integrals.

    Left out: what the frames are too few for, or what does not exist (a vertical axis).
    """
    if "ensemble/state" not in run or len(run["ensemble/t"]) < FEWEST_FRAMES:
        return {}
    t = run["ensemble/t"][:]
    names = ("lowest", "highest", "period", "precession")
    errors = np.full(len(names), -np.inf)
    first = np.full(len(names), np.nan)
    for part in blocks(model, len(t)):
        state = run["ensemble/state"][:, model.start + part.start : model.start + part.stop]
        values = {name: value[part] for name, value in model.values.items()}
        constants = integrals(model.coefficients(values), state[0])
        theory, seen = exact(constants), observed(t, state, constants)
        sampled = theory.period > FEWEST_FRAMES * (t[1] - t[0])
        for index, name in enumerate(names):
            expected, found = getattr(theory, name), getattr(seen, name)
            error = np.where(sampled, np.abs(found - expected), np.nan)
            errors[index] = np.fmax(errors[index], np.fmax.reduce(error, initial=-np.inf))
            if model.start + part.start == 0 and sampled[0]:
                first[index] = found[0]
    errors = model.ranks.largest(errors)
    first = model.ranks.largest(np.where(np.isnan(first), -np.inf, first))
    figures = {
        "nutation_lowest": first[0],
        "nutation_highest": first[1],
        "nutation_period": first[2],
        "precession_per_nutation": first[3],
        "nutation_lowest_error": errors[0],
        "nutation_highest_error": errors[1],
        "nutation_period_error": errors[2],
        "precession_per_nutation_error": errors[3],
    }
    return {name: float(value) for name, value in figures.items() if np.isfinite(value)}
