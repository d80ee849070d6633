"""When steps, frames and checkpoints happen: all in whole steps, so that no time is ever summed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


class Misfit(Exception):
    """Times of a case that do not go together: the key to blame and what is wrong with it."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key}{text}")
        self.key = key
        self.text = text


@dataclass(frozen=True)
class Schedule:
    """`steps` steps of `dt`; a frame every `frame_steps`, a checkpoint every `checkpoint_steps`."""

    dt: float
    steps: int
    frame_steps: int
    checkpoint_steps: int

    def time(self, step: int) -> float:
        """Simulated time at a step [s]."""
        return step * self.dt


def exact(value: float) -> Fraction:
    """The decimal number that a user wrote, not its binary neighbour."""
    return Fraction(repr(float(value)))


def common_divisor(a: Fraction, b: Fraction) -> Fraction:
    """The largest number that goes a whole number of times into both."""
    denominator = math.lcm(a.denominator, b.denominator)
    return Fraction(math.gcd(int(a * denominator), int(b * denominator)), denominator)


def fit_step(end: float, every: float, wanted: float) -> float:
    """The largest dt ≤ wanted that divides both the end time and the time between frames."""
    if every > end:
        raise Misfit("output.every", f" = {every:g}: must not exceed time.end = {end:g}")
    ratio, wanted = end / every, min(wanted, every)
    if abs(ratio - round(ratio)) < 1e-12 * ratio:  # a multiple, but for rounding
        common = exact(every)
    else:
        common = common_divisor(exact(end), exact(every))
    if common < exact(wanted) / 1000:
        whole = round(end / every) * every
        raise Misfit(
            "output.every",
            f" = {every!r}: no reasonable dt divides both it and time.end = {end!r}; "
            f"make time.end a multiple of it, for example {whole:.12g}",
        )
    parts = math.ceil(float(common) / wanted * (1 - 1e-12))
    return float(common / parts)


def schedule(end: float, every: float, dt: float, checkpoint_every: float) -> Schedule:
    """The schedule for a dt that fits (see `fit_step`); refuses one that does not."""
    steps, frame_steps = round(end / dt), round(every / dt)
    for name, span, count in (("time.end", end, steps), ("output.every", every, frame_steps)):
        if count < 1 or abs(count * dt - span) > 1e-9 * span:
            below = max(1, math.floor(span / dt)) * dt
            raise Misfit(
                name,
                f" = {span!r}: must be a multiple of dt = {dt!r}, "
                f"for example {below:.12g} or {below + dt:.12g}",
            )
    return Schedule(dt, steps, frame_steps, max(1, round(checkpoint_every / dt)))
