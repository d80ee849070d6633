"""The case of rods in a flow: the tables of a flow, and one table for each rod."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hpcsim.case.schema import Positive, Table, key
from hpcsim.coupling.kernels import KERNELS
from hpcsim.formula import Formula, FormulaError
from hpcsim.models.fluid import case as fluid
from hpcsim.models.fluid.case import FluidCase, FluidTime, Texts

Numbers = Positive | list[Positive]


class RodTime(FluidTime):
    """Table [time] of rods in a flow."""

    coupling: Literal["midpoint", "forward-backward"] = key(
        "midpoint", "when forces of the rods act: both ways do not grow"
    )


class RodTable(Table):
    """Table [rod]."""

    nodes: int = key(..., "nodes", ge=2, le=1 << 20)
    length: float = key(..., "length", "m", gt=0)
    closed: bool = key(False, "the last node is followed by the first")
    bend: Numbers = key(
        ..., "bending stiffness: a number, or twist, bending about d2, about d3", "N m2"
    )
    stretch: Numbers = key(
        ..., "stretching stiffness: a number, or stretch, shear along d2, along d3", "N"
    )
    rest_curvature: Texts = key(
        [], "rest twist and bending, formulas of s, t: 3D three, 2D one; none: 0", "1/m"
    )
    rest_strain: Texts = key([], "rest stretch and shear, formulas of s, t: 3D three, 2D two", "")
    shape: Literal["straight", "ring"] = key("straight", "starting shape, if no centre is given")
    position: list[float] = key([], "middle of the starting shape; none: middle of the box", "m")
    centre: Texts = key([], "centre line at the start, formulas of s", "m")
    d1: Texts = key([], "first director at the start, along the rod, formulas of s")
    d2: Texts = key([], "second director at the start, formulas of s")
    bending: Literal["couple", "force"] = key(
        "couple", "bending by couples, or by forces with frames along the tangent (no shear)"
    )
    kernel: Literal[tuple(KERNELS)] = key("s4", "kernel that spreads the rod over the grid")  # type: ignore[valid-type]
    dilation: int = key(1, "kernel width in units of its own", ge=1, le=64)
    gradient: Literal["indirect", "direct"] = key(
        "indirect", "gradient of the kernel: differences of its weights, or its derivative"
    )


def listed(value: Any) -> Any:
    """One table [rod] is a list of one."""
    return [value] if isinstance(value, dict) else value


class RodCase(FluidCase):
    """The case of rods in a flow in a periodic box."""

    time: RodTime = Field(description="Time")
    rod: Annotated[list[RodTable], BeforeValidator(listed)] = Field(
        description="Rod; several as [[rod]]", min_length=1, max_length=1000
    )

    def rest_formulas(self, texts: list[str]) -> list[Formula]:
        """Formulas of s and t."""
        return [self.formula(text, ("s", "t")) for text in texts]

    def shape_formulas(self, texts: list[str]) -> list[Formula]:
        """Formulas of s."""
        return [self.formula(text, ("s",)) for text in texts]


def problems(case: RodCase) -> list[tuple[str, str]]:
    """What is wrong between keys: (dotted key, text that goes behind it)."""
    found = fluid.problems(case)
    dim = case.dim
    if case.time.control == "error":
        found.append(("time.control", ' = "error": a step with rods cannot be taken back'))
    for index, rod in enumerate(case.rod):
        name = f"rod.{index}"
        lists: list[tuple[str, list[Any], int]] = [
            ("rest_curvature", rod.rest_curvature, 3 if dim == 3 else 1),
            ("rest_strain", rod.rest_strain, dim),
            ("position", rod.position, dim),
            ("centre", rod.centre, dim),
            ("d1", rod.d1, dim),
            ("d2", rod.d2, 3),
            ("bend", rod.bend if isinstance(rod.bend, list) else [], 3 if dim == 3 else 1),
            ("stretch", rod.stretch if isinstance(rod.stretch, list) else [], dim),
        ]
        for row, values, wanted in lists:
            if values and len(values) != wanted:
                found.append(
                    (f"{name}.{row}", f" has {len(values)} entries: must be {wanted} in {dim}D")
                )
            variables = ("s", "t") if row.startswith("rest") else ("s",)
            for place, text in enumerate(values):
                if isinstance(text, str):
                    try:
                        case.formula(text, variables)
                    except FormulaError as problem:
                        found.append((f"{name}.{row}", f"[{place}] = {text[:60]!r}: {problem}"))
        if bool(rod.centre) != bool(rod.d1) or (dim == 3 and bool(rod.d1) != bool(rod.d2)):
            wanted_keys = "centre, d1 and d2" if dim == 3 else "centre and d1"
            found.append((f"{name}.centre", f": give {wanted_keys} together, or none"))
        if dim == 2 and rod.d2:
            found.append((f"{name}.d2", ": follows from d1 in 2D"))
        if rod.closed and rod.nodes < 3:
            found.append((f"{name}.nodes", f" = {rod.nodes}: a closed rod needs 3"))
        if rod.shape == "ring" and not rod.closed and not rod.centre:
            found.append((f"{name}.shape", ' = "ring": needs closed = true'))
        reach = KERNELS[rod.kernel].width * rod.dilation + 2 * (rod.gradient == "indirect")
        for axis, n in enumerate(case.fluid.n):
            if reach > n:
                found.append(
                    (
                        f"{name}.kernel",
                        f': "{rod.kernel}" at dilation {rod.dilation} reaches {reach} points, '
                        f"but fluid.n[{axis}] = {n}",
                    )
                )
    return found
