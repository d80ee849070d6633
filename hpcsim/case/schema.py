"""What every case holds. A model's own schema derives from `Case` and adds its tables.

A key is declared once, with its default, its meaning, its unit and its bounds; reading, error
messages and `hpcsim show` all follow from that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


def key(default: Any, meaning: str, unit: str = "", **bounds: Any) -> Any:
    """A key of a case: default (`...` if it must be given), meaning, unit, bounds (gt, ge, …)."""
    return Field(default, description=meaning, json_schema_extra={"unit": unit}, **bounds)


def table(kind: type[BaseModel], meaning: str) -> Any:
    """A table of a case whose keys all have defaults."""
    return Field(default_factory=kind, description=meaning)


class Table(BaseModel):
    """A TOML table: unknown keys, wrong types, NaN and infinity are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


Positive = Annotated[float, Field(gt=0)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]


class Identity(Table):
    """Table [case]."""

    name: Name = key(..., "name of the case")
    model: str = key(..., "the model that is simulated")
    title: str = key("", "one line for lists and pictures")


class Time(Table):
    """Table [time]; a model narrows `scheme` to the ones it offers."""

    end: float = key(..., "simulated time at the end", "s", gt=0)
    dt: Positive | Literal["auto"] = key("auto", 'time step, or "auto": chosen by the model', "s")
    scheme: str = key(..., "time scheme")
    wall_limit: float = key(
        0.0, "stop with a checkpoint after this wall time; 0 = never", "s", ge=0
    )


class Output(Table):
    """Table [output]; a model adds `fields`: what its frames may hold."""

    every: float = key(..., "simulated time between frames", "s", gt=0)
    checkpoint_every: Positive | Literal["auto"] = key(
        "auto", 'simulated time between checkpoints, or "auto": a tenth of time.end', "s"
    )


class Case(Table):
    """The tables every case has."""

    case: Identity = Field(description="What this is")
    time: Time = Field(description="Time")
    output: Output = Field(description="Output")
