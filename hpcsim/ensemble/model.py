"""An ensemble as a model: a derived class says what one member is, this one does the rest.

A member is given by data and three building blocks over a block of 64 members (see `engine`):
`start(given, y)`, `rate(t, y, p, dy)` and `observe(y, p, values, scales)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from hpcsim.case.schema import Case, Output, Table, Time, key, table
from hpcsim.ensemble import engine
from hpcsim.ensemble.parameters import Parameter, draw, grid_members
from hpcsim.models.interface import Quantity
from hpcsim.parallel.share import Share
from hpcsim.time.tableaux import EXPLICIT

if TYPE_CHECKING:
    from hpcsim.output.run import Run
    from hpcsim.parallel.ranks import Ranks


class EnsembleTime(Time):
    """Table [time] of an ensemble."""

    scheme: Literal["euler", "midpoint", "heun", "rk3", "rk4"] = key("rk4", "time scheme")


class EnsembleOutput(Output):
    """Table [output] of an ensemble."""

    fields: list[Literal["state", "invariants"]] = key(
        ["state", "invariants"], "what a frame holds"
    )


class Members(Table):
    """Table [ensemble]."""

    members: int = key(1, "number of members; a grid among the parameters sets it", ge=1, le=10**9)
    seed: int = key(0, "seed of the random parameters", ge=0, lt=2**64)


class EnsembleCase(Case):
    """A case whose members vary in the parameters of its other tables."""

    time: EnsembleTime = Field(description="Time")
    output: EnsembleOutput = Field(description="Output")
    ensemble: Members = table(
        Members,
        "Members. What may vary below is a number, {range = [a, b]}, {random = [a, b]}, "
        "{list = [...]} or {grid = [a, b, n]}; grids multiply",
    )


@dataclass(frozen=True)
class Invariant:
    """A conserved quantity; `running`: its scale is a maximum over time, else its first value."""

    name: str
    units: str
    running: bool = False


class Ensemble:
    """Members in blocks over the ranks, advanced by the engine, watched by their invariants."""

    schema: ClassVar[type[EnsembleCase]]
    size_key = "ensemble.members"
    dofs: ClassVar[tuple[str, ...]]
    dof_units: ClassVar[str]
    invariants: ClassVar[tuple[Invariant, ...]]
    start_members: ClassVar[Callable[..., None]]
    advance_members: ClassVar[Callable[..., None]]
    observe_members: ClassVar[Callable[..., None]]

    @classmethod
    def parameters(cls, case: Any) -> dict[str, Parameter]:
        """The parameters of a member, by dotted key: every key of the case that may vary."""
        return {
            f"{part}.{row}": value
            for part in type(case).model_fields
            for row, value in getattr(case, part)
            if isinstance(value, Parameter)
        }

    @classmethod
    def given(cls, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """What `start` works from, (member, row)."""
        raise NotImplementedError

    @classmethod
    def coefficients(cls, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """What `rate` and `observe` work with, (member, row)."""
        raise NotImplementedError

    # ---- before the run ----

    @classmethod
    def problems(cls, case: Any) -> list[tuple[str, str]]:
        """Lists that are not as long as the ensemble."""
        parameters = cls.parameters(case)
        members = grid_members(parameters) or case.ensemble.members
        wrong = {
            name: len(parameter.values)
            for name, parameter in parameters.items()
            if parameter.kind == "list" and len(parameter.values) != members
        }
        return [
            (name, f" lists {length} values: must be {members}, as many as ensemble.members")
            for name, length in wrong.items()
        ]

    @classmethod
    def settle(cls, case: Any) -> tuple[Any, list[str]]:
        """The case with the number of members that its grids make."""
        members = grid_members(cls.parameters(case))
        if members is None or members == case.ensemble.members:
            return case, []
        settled = case.ensemble.model_copy(update={"members": members})
        note = (
            f"ensemble.members = {members}, the product of the grids (was {case.ensemble.members})"
        )
        return case.model_copy(update={"ensemble": settled}), [note]

    @classmethod
    def draw(cls, case: Any, start: int, count: int) -> dict[str, np.ndarray]:
        """Parameter values of members start … start+count−1."""
        return draw(cls.parameters(case), case.ensemble.members, case.ensemble.seed, start, count)

    @classmethod
    def remarks(cls, case: Any, ranks: int) -> list[str]:
        """Nothing: any number of ranks suits an ensemble."""
        return []

    @classmethod
    def memory(cls, case: Any, ranks: int) -> int:
        """Bytes per rank: state, its copies for output and safety, parameters, tallies."""
        members = -(-case.ensemble.members // ranks)
        columns = 4 * len(cls.dofs) + 6 * len(cls.invariants) + 3 * len(cls.parameters(case))
        return 8 * columns * max(members, engine.LANES)

    # ---- the run ----

    def __init__(self, case: Any, ranks: Ranks) -> None:
        self.case = case
        self.ranks = ranks
        self.members: int = case.ensemble.members
        self.start, self.count = ranks.block(self.members)
        self.values = self.draw(case, self.start, self.count)
        self.tableau = EXPLICIT[case.time.scheme]
        self._a, self._b, self._c = self.tableau.a, self.tableau.b, self.tableau.c
        blocks = engine.block_count(self.count)
        self._state = np.zeros((blocks, len(self.dofs), engine.LANES))
        shape = (blocks, len(self.invariants), engine.LANES)
        self._observed, self._scale_now = np.zeros(shape), np.zeros(shape)
        self._rows = np.empty((self.count, len(self.dofs)))
        rows = (self.count, len(self.invariants))
        self._value, self._first = np.empty(rows), np.empty(rows)
        self._change, self._scale = np.zeros(rows), np.empty(rows)
        self._running = np.array([invariant.running for invariant in self.invariants])
        self._coefficients = engine.pack(self.coefficients(self.values))
        self.quantities = self._describe()

    def _describe(self) -> dict[str, Quantity]:
        described = {
            "ensemble/state": Quantity(("member", "dof"), self.dof_units, (("dofs", self.dofs),))
        }
        for dotted in self.values:
            units = _units(type(self.case), dotted)
            described[f"ensemble/parameters/{_last(dotted)}"] = Quantity(("member",), units)
        for invariant in self.invariants:
            described[f"ensemble/invariants/{invariant.name}"] = Quantity(
                ("member",), invariant.units
            )
            described[f"series/drift_{invariant.name}"] = Quantity((), "1")
        return described

    def prepare(self) -> None:
        """Compile the engine for this member, or load it."""
        self.begin()
        self.advance(0, 0)
        engine.unpack(self._state, self._rows)
        engine.first_bad(self._state)

    def begin(self) -> list[str]:
        """Set the members to their start."""
        type(self).start_members(engine.pack(self.given(self.values)), self._state)
        self._observe()
        self._first[:] = self._value
        self._scale[:] = self._scale_rows()
        return []

    def advance(self, step: int, count: int) -> None:
        """Advance every member of this rank by `count` steps."""
        type(self).advance_members(
            self._state,
            self._coefficients,
            self._a,
            self._b,
            self._c,
            step,
            self.case.time.dt,
            count,
        )

    def trouble(self) -> str:
        """The first member of this rank whose state is not finite."""
        bad = engine.first_bad(self._state)
        if bad < 0:
            return ""
        return f"member {self.start + bad} is no longer finite; a smaller time.dt may help"

    def _observe(self) -> None:
        type(self).observe_members(self._state, self._coefficients, self._observed, self._scale_now)
        engine.unpack(self._observed, self._value)

    def _scale_rows(self) -> np.ndarray:
        rows = np.empty_like(self._value)
        engine.unpack(self._scale_now, rows)
        return rows

    def _drift(self) -> np.ndarray:
        """Largest relative change of each invariant over members and time so far, (invariant)."""
        scale = np.where(self._scale > 0, self._scale, 1.0)
        drift = np.max(self._change / scale, axis=0, initial=0.0)
        return self.ranks.largest(drift)

    def frame(self) -> dict[str, Share]:
        """State, invariants, and the largest drifts so far."""
        self._observe()
        np.maximum(self._change, np.abs(self._value - self._first), out=self._change)
        np.maximum(self._scale, self._scale_rows(), out=self._scale, where=self._running)
        shares = {}
        fields = self.case.output.fields
        if "state" in fields:
            engine.unpack(self._state, self._rows)
            shares["ensemble/state"] = self._share(self._rows)
        drift = self._drift()
        for index, invariant in enumerate(self.invariants):
            if "invariants" in fields:
                column = self._share(self._value[:, index])
                shares[f"ensemble/invariants/{invariant.name}"] = column
            shares[f"series/drift_{invariant.name}"] = Share(np.array(drift[index]))
        return shares

    def constants(self) -> dict[str, Share]:
        """The parameters of every member."""
        return {
            f"ensemble/parameters/{_last(dotted)}": self._share(value)
            for dotted, value in self.values.items()
        }

    def state(self) -> dict[str, Share]:
        """State of the members and the tallies behind the drifts."""
        engine.unpack(self._state, self._rows)
        tallies = {"first": self._first, "change": self._change, "scale": self._scale}
        return {
            name: self._share(rows) for name, rows in {"members": self._rows, **tallies}.items()
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved state."""
        if self.count:
            self._state[:] = engine.pack(state["members"])
        self._first[:], self._change[:], self._scale[:] = (
            state[name] for name in ("first", "change", "scale")
        )

    def figures(self, run: Run) -> dict[str, float]:
        """Members and largest drifts."""
        drift = self._drift()
        return {"members": self.members} | {
            f"drift_{invariant.name}": float(drift[index])
            for index, invariant in enumerate(self.invariants)
        }

    def _share(self, local: np.ndarray) -> Share:
        return Share(local, 0, self.start, self.members)


def _last(dotted: str) -> str:
    """The name of a key without its table."""
    return dotted.rpartition(".")[2]


def _units(schema: type[Case], dotted: str) -> str:
    """The unit of a key."""
    part, _, row = dotted.partition(".")
    kind: Any = schema.model_fields[part].annotation
    return str(kind.model_fields[row].json_schema_extra["unit"])
