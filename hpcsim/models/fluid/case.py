"""The case of a flow: its tables, what must fit together, and the formulas in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field

from hpcsim.case.schema import Case, Output, Positive, Table, Time, key, table
from hpcsim.formula import Formula, FormulaError
from hpcsim.formula.operations import CONSTANTS, FUNCTIONS
from hpcsim.time.tableaux import ADDITIVE, EXPLICIT, AdditivePair, as_pair

Points = Annotated[int, Field(ge=4, le=1 << 15)]
Texts = list[Annotated[str, Field(max_length=2000)]]
AXES = ("x", "y", "z")
#: Points per axis at which formulas of a case are tried before a run.
SAMPLE = 24
#: Names that formulas know besides the parameters of a case.
TAKEN = {*AXES, "t", "nu", "rho", *CONSTANTS, *FUNCTIONS}


class FluidTime(Time):
    """Table [time] of a flow."""

    scheme: Literal[
        "euler",
        "trapezoid",
        "koto",
        "ars222",
        "ars443",
        "ark3",
        "ark4",
        "ark5",
        "midpoint",
        "heun",
        "rk3",
        "rk4",
    ] = key("ars222", "time scheme: additive pairs, and explicit ones from midpoint on")
    viscous: Literal["implicit", "explicit"] = key(
        "implicit", "how the viscous term is treated; explicit takes the explicit half of a pair"
    )
    control: Literal["fixed", "courant", "error"] = key(
        "fixed",
        "steps: all of dt; or as many parts of it as courant (and the limit of an explicit viscous "
        "term) or tolerance ask for",
    )
    courant: float = key(0.5, 'Courant number of dt = "auto" and of control = "courant"', gt=0)
    tolerance: float = key(
        1e-5, 'error of a step relative to the rms velocity, for control = "error"', gt=0, lt=1
    )


class FluidOutput(Output):
    """Table [output] of a flow."""

    fields: list[Literal["u", "p", "vorticity"]] = key(["u"], "fields of a frame")
    every_point: int = key(1, "record every n-th point of each axis", ge=1)
    precision: Literal["double", "single"] = key("double", "numbers of recorded fields")


class FluidTable(Table):
    """Table [fluid]."""

    n: list[Points] = key(..., "grid points per axis", min_length=2, max_length=3)
    box: list[Positive] = key(..., "lengths of the periodic box", "m", min_length=2, max_length=3)
    density: float = key(1.0, "density", "kg/m3", gt=0)
    viscosity: float = key(
        0.0, "dynamic viscosity; must be given, or reynolds; 0 = inviscid", "Pa s", ge=0
    )
    reynolds: float = key(
        0.0,
        "given instead of density and viscosity: viscosity 1/Re, density 1; 0 = not given",
        ge=0,
    )
    operators: Literal["centred", "fourth", "spectral"] = key("centred", "spatial operators")
    mean_flow: Literal["kept", "driven"] = key(
        "kept", "mean velocity of the box: kept, or driven by the mean force"
    )
    reproducible: bool = key(
        False, "plan transforms by rule: the same bits on every machine of a kind, some 10 % slower"
    )


class Start(Table):
    """Table [start]."""

    velocity: Literal["rest", "random", "manufactured"] | Texts = key(
        "rest", "rest, random (see energy, peak), manufactured (see terms), or formulas of x, y, z"
    )
    seed: int = key(0, "seed of random and manufactured", ge=0, lt=2**64)
    energy: float = key(0.5, "random: mean of |u|²/2", "m2/s2", gt=0)
    peak: float = key(
        3.0, "random: peak of the spectrum, in units of the smallest wavenumber", gt=0
    )
    terms: int = key(3, "manufactured: number of waves", ge=1, le=100)


class ForceTable(Table):
    """Table [force]."""

    body: Texts = key([], "body force, one formula of x, y, z, t per axis", "N/m3")
    couple: Texts = key([], "couple density: 3D three formulas, 2D one", "N m/m3")


class Exact(Table):
    """Table [exact]."""

    velocity: Texts = key([], "exact velocity, formulas of x, y, z, t, for velocity_error", "m/s")
    pressure: str = key("", "exact pressure, a formula, for pressure_error", "Pa")


class Parameters(Table):
    """Table [parameters]: numbers that formulas may name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float] = Field(init=False)


class FluidCase(Case):
    """The case of a flow in a periodic box."""

    time: FluidTime = Field(description="Time")
    output: FluidOutput = Field(description="Output")
    fluid: FluidTable = Field(description="Fluid")
    start: Start = table(Start, "Velocity at the start")
    force: ForceTable = table(ForceTable, "Force on the fluid")
    exact: Exact = table(Exact, "Exact solution to compare with, where one is known")
    parameters: Parameters = table(
        Parameters, "Numbers that formulas may name, beside nu (viscosity/density), rho and pi"
    )

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.fluid.n)

    def formula(self, text: str, variables: Sequence[str]) -> Formula:
        """A formula of the case."""
        known = {"nu": self.fluid.viscosity / self.fluid.density, "rho": self.fluid.density}
        return Formula.parse(text, tuple(variables), known | self.parameters.__pydantic_extra__)

    def formulas(self, texts: Sequence[str]) -> list[Formula]:
        """Formulas of place and time."""
        return [self.formula(text, (*AXES[: self.dim], "t")) for text in texts]

    @property
    def pair(self) -> AdditivePair:
        """The tableaux of the time scheme."""
        name = self.time.scheme
        if name not in ADDITIVE:
            return as_pair(EXPLICIT[name])
        return ADDITIVE[name].explicit_half() if self.time.viscous == "explicit" else ADDITIVE[name]


def problems(case: FluidCase) -> list[tuple[str, str]]:
    """What is wrong between keys: (dotted key, text that goes behind it)."""
    fluid, dim = case.fluid, case.dim
    found = [
        (f"parameters.{name}", ": has a meaning already; choose another name")
        for name in case.parameters.__pydantic_extra__
        if name in TAKEN
    ]
    if found:
        return found  # formulas would only repeat it
    if "viscosity" not in fluid.model_fields_set and not fluid.reynolds:
        text = ": missing; give it (0 for an inviscid flow), or fluid.reynolds"
        found.append(("fluid.viscosity", text))
    if len(fluid.box) != dim:
        found.append(("fluid.box", f" has {len(fluid.box)} lengths: must be {dim}, as fluid.n has"))
    if fluid.reynolds and (
        fluid.density != 1.0 or fluid.viscosity not in (0.0, 1 / fluid.reynolds)
    ):
        found.append(
            (
                "fluid.reynolds",
                ": stands for viscosity 1/Re and density 1: drop it (fluid.reynolds = 0) or those "
                "(fluid.viscosity = 0, fluid.density = 1)",
            )
        )
    if case.time.control == "error" and case.pair.embedded is None:
        able = ", ".join(name for name, pair in ADDITIVE.items() if pair.embedded_weights)
        found.append(
            (
                "time.control",
                f' = "error": {case.time.scheme} has no error estimate; {able} have one',
            )
        )
    velocity = case.start.velocity
    lists: list[tuple[str, Any, int]] = [
        ("start.velocity", velocity if isinstance(velocity, list) else [], dim),
        ("force.body", case.force.body, dim),
        ("force.couple", case.force.couple, 1 if dim == 2 else 3),
        ("exact.velocity", case.exact.velocity, dim),
        ("exact.pressure", [case.exact.pressure] if case.exact.pressure else [], 1),
    ]
    for name, texts, wanted in lists:
        if texts and len(texts) != wanted:
            found.append((name, f" has {len(texts)} formulas: must be {wanted} for {dim} axes"))
        for index, text in enumerate(texts):
            try:
                problem = undefined(case, text)
            except FormulaError as error:
                problem = str(error)
            if problem:
                place = f"[{index}]" if name != "exact.pressure" else ""
                found.append((name, f"{place} = {text[:60]!r}: {problem}"))
    if case.exact.pressure and not case.exact.velocity:
        found.append(("exact.pressure", ": needs exact.velocity too"))
    for index, n in enumerate(fluid.n):
        if -(-n // case.output.every_point) < 2:
            text = f" = {case.output.every_point}: leaves one point of fluid.n[{index}] = {n}"
            found.append(("output.every_point", text))
    if velocity == "manufactured" and (case.force.body or case.force.couple):
        found.append(("force", ": a manufactured flow brings its own force"))
    highest = min(
        (n - 1) // (3 if fluid.operators == "spectral" else 2) * max(fluid.box) / length
        for n, length in zip(fluid.n, fluid.box, strict=False)
    )
    if velocity == "random" and case.start.peak > highest:
        text = f" = {case.start.peak:g}: the grid keeps wavenumbers up to {highest:g} only"
        found.append(("start.peak", text))
    return found


def undefined(case: FluidCase, text: str, t: float = 0.0) -> str:
    """Where a formula of the case is not finite, of a sample of places; empty if nowhere."""
    (formula,) = case.formulas([text])
    points = [
        np.arange(min(n, SAMPLE)) * (length / min(n, SAMPLE))
        for n, length in zip(case.fluid.n, case.fluid.box, strict=False)
    ]
    grid = np.meshgrid(*points, indexing="ij")
    bad = np.flatnonzero(~np.isfinite(formula(*grid, np.full_like(grid[0], t))))
    if not len(bad):
        return ""
    where = [f"{axis} = {x.flat[bad[0]]:g}" for axis, x in zip(AXES, grid, strict=False)]
    return f"is not finite at {', '.join(where)}, t = {t:g}"
