"""Parameters of ensemble members: a number, or a table that says how it varies over the members.

Member 17 gets the same value whatever the number of ranks, and without computing the others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BeforeValidator, PlainSerializer

KINDS = {"range": 2, "grid": 3, "list": None, "random": 2}
FORMS = "a number, {range = [a, b]}, {grid = [a, b, n]}, {list = [...]} or {random = [a, b]}"


@dataclass(frozen=True)
class Parameter:
    """How one parameter varies: kind (number or one of KINDS) and its values."""

    kind: str
    values: tuple[float, ...]

    @property
    def extent(self) -> tuple[float, ...]:
        """Values between which all members lie."""
        return self.values[:2] if self.kind == "grid" else self.values

    @property
    def points(self) -> int:
        """Number of points of a grid."""
        return int(self.values[2])


def number(value: Any) -> bool:
    """Whether a TOML value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def parse(value: Any) -> Parameter:
    """A parameter from its TOML value."""
    if isinstance(value, Parameter):
        return value
    if number(value):
        return Parameter("number", (float(value),))
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in KINDS:
        raise ValueError(FORMS)
    ((kind, values),) = value.items()
    length = KINDS[kind]
    if not isinstance(values, list) or not values or not all(number(v) for v in values):
        raise ValueError(f"{FORMS}, with finite numbers")
    if length is not None and len(values) != length:
        raise ValueError(f"{FORMS}; {kind} takes {length} numbers, not {len(values)}")
    if kind == "grid" and (values[2] != int(values[2]) or values[2] < 1):
        raise ValueError(f"{FORMS}; the n of a grid is a whole number from 1 up")
    return Parameter(kind, tuple(float(v) for v in values))


def written(parameter: Parameter) -> float | dict[str, list[float]]:
    """The TOML value of a parameter."""
    if parameter.kind == "number":
        return parameter.values[0]
    values = list(parameter.values)
    if parameter.kind == "grid":
        values[2] = parameter.points
    return {parameter.kind: values}


@dataclass(frozen=True)
class Within:
    """A bound that every value of a parameter must keep."""

    text: str
    holds: Callable[[float], bool]

    def __call__(self, parameter: Parameter) -> Parameter:
        """The parameter itself, or an error that names the bound."""
        if not all(self.holds(value) for value in parameter.extent):
            raise ValueError(self.text)
        return parameter


AnyValue = Annotated[Parameter, BeforeValidator(parse), PlainSerializer(written, return_type=Any)]
PositiveValue = Annotated[AnyValue, AfterValidator(Within("> 0", lambda value: value > 0))]
PolarAngle = Annotated[
    AnyValue, AfterValidator(Within("between 0 and pi", lambda value: 0 <= value <= math.pi))
]


def grid_members(parameters: Mapping[str, Parameter]) -> int | None:
    """The number of members that the grids among the parameters make; None without a grid."""
    points = [parameter.points for parameter in parameters.values() if parameter.kind == "grid"]
    return math.prod(points) if points else None


def draw(
    parameters: Mapping[str, Parameter], members: int, seed: int, start: int, count: int
) -> dict[str, np.ndarray]:
    """Values of every parameter for members start … start+count−1, each an array (count)."""
    index = np.arange(start, start + count)
    values = {}
    stride = grid_members(parameters) or 1
    for name, parameter in parameters.items():
        if parameter.kind == "grid":
            stride //= parameter.points
            place = index // stride % parameter.points
            values[name] = between(parameter, place, parameter.points)
        elif parameter.kind == "range":
            values[name] = between(parameter, index, members)
        elif parameter.kind == "list":
            values[name] = np.array(parameter.values[start : start + count])
        elif parameter.kind == "random":
            low, high = parameter.values
            values[name] = low + (high - low) * uniform(seed, name, start, count)
        else:
            values[name] = np.full(count, parameter.values[0])
    return values


def between(parameter: Parameter, place: np.ndarray, points: int) -> np.ndarray:
    """Evenly spaced values between the ends of a range or grid, both included."""
    low, high = parameter.extent
    if points == 1:
        return np.full(place.shape, low)
    return np.where(place == points - 1, high, low + (high - low) * (place / (points - 1)))


def uniform(seed: int, name: str, start: int, count: int) -> np.ndarray:
    """Uniform numbers in [0, 1): the Philox stream keyed by (seed, name), counted by member."""
    label = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
    stream = np.random.Philox(key=(label << 64) | seed, counter=start)
    words = stream.random_raw(4 * count)[::4]  # one counter value makes four words
    return (words >> np.uint64(11)) * 2.0**-53
