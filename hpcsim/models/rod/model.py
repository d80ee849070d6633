"""Rods in a flow, from the case to the frames: the flow's model with a force that moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.coupling.immersion import Immersion, Immersions
from hpcsim.coupling.kernels import KERNELS
from hpcsim.coupling.limits import largest_step
from hpcsim.coupling.march import RodMarch
from hpcsim.coupling.steps import COUPLINGS
from hpcsim.fluid.march import Control, March
from hpcsim.formula import Formula
from hpcsim.models.fluid.model import Fluid
from hpcsim.models.interface import Quantity
from hpcsim.models.rod import case as cases
from hpcsim.models.rod import pictures
from hpcsim.models.rod.case import RodCase, RodTable
from hpcsim.parallel.share import Share
from hpcsim.rod import shapes
from hpcsim.rod.rods import MECHANICS, Rod, Rods

if TYPE_CHECKING:
    from hpcsim.output.run import Run


class RodInFluid(Fluid):
    """Incompressible flow with elastic rods that move with it."""

    schema = RodCase
    draw_pictures = staticmethod(pictures.draw_pictures)
    draw_frame = staticmethod(pictures.draw_frame)
    case: RodCase
    march: RodMarch

    # ---- before the run ----

    @classmethod
    def problems(cls, case: RodCase) -> list[tuple[str, str]]:  # type: ignore[override]
        """What is wrong between keys."""
        return cases.problems(case)

    @classmethod
    def time_limits(cls, case: RodCase) -> dict[str, float]:  # type: ignore[override]
        """Those of the flow, and the stability of the explicit elastic force."""
        limits = super().time_limits(case)
        limits["stability of the elastic force"] = min(elastic_limit(rod, case) for rod in case.rod)
        return limits

    # ---- set-up ----

    def _made_march(self, control: Control) -> March:
        """The flow's, with the rods that this makes."""
        case, flow = self.case, self.flow
        made = [built(rod, case) for rod in case.rod]
        self.rods = Rods([rod for rod, _, _ in made])
        for nodes, (_, r, frames) in zip(self.rods.nodes, made, strict=True):
            self.rods.r[nodes], self.rods.frames[nodes] = r, frames
        self._start = self.rods.r.copy(), self.rods.frames.copy()
        planes = self.transform.start, self.transform.count
        parts = [
            (
                nodes,
                Immersion(
                    self.grid,
                    planes,
                    self.ranks,
                    table.nodes,
                    KERNELS[table.kernel],
                    (table.dilation,) * self.grid.dim,
                    table.gradient,
                ),
            )
            for nodes, table in zip(self.rods.nodes, case.rod, strict=True)
        ]
        immersion = Immersions(parts, self.ranks)
        outside = flow.force
        coupling = COUPLINGS[case.time.coupling](self.rods, immersion, outside)
        flow.drive(coupling)
        return RodMarch(
            flow, self.stepper, control, self.ranks, self.u_hat, outside, coupling=coupling
        )

    def _describe(self) -> dict[str, Quantity]:
        dim = self.grid.dim
        angles = ("node", "component") if dim == 3 else ("node",)
        noise = {
            f"series/noise_ratio{suffix(index)}": Quantity((), "1")
            for index in range(len(self.rods.rods))
        }
        return (
            super()._describe()
            | noise
            | {
                "series/elastic_energy": Quantity((), "J"),
                "rod/s": Quantity(("node",), "m"),
                "rod/start": Quantity(("rod",), "1"),
                "rod/r": Quantity(("node", "dim"), "m"),
                "rod/R": Quantity(("node", "dim", "dim"), "1"),
                "rod/strain": Quantity(("node", "component"), "1"),
                "rod/curvature": Quantity(angles, "1/m"),
                "rod/curvature_prescribed": Quantity(angles, "1/m"),
            }
        )

    def begin(self) -> list[str]:
        """Flow and rods at their start."""
        notes = super().begin()
        self.rods.r[:], self.rods.frames[:] = self._start
        self.rods.load(0.0)
        self.march.clock.given += self._stored()
        return notes

    def _stored(self) -> float:
        """Elastic energy [J]."""
        return float(self.rods.energy.sum())

    # ---- output ----

    def state(self) -> dict[str, Share]:
        """That of the flow, and places and frames of the rods."""
        self.march.complete()
        return super().state() | {"r": Share(self.rods.r), "R": Share(self.rods.frames)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved state."""
        super().restore(state)
        self.march.coupling.abandon()
        self.rods.r[:], self.rods.frames[:] = state["r"], state["R"]
        self.rods.load(self.march.clock.time)

    def constants(self) -> dict[str, Share]:
        """Those of the flow, places along the rods, and the first node of each."""
        start = np.array([nodes.start for nodes in self.rods.nodes], np.int64)
        s = np.concatenate([rod.s for rod in self.rods.rods])
        return super().constants() | {"rod/s": Share(s), "rod/start": Share(start)}

    def frame(self) -> dict[str, Share]:
        """That of the flow, and the rods; strains are moved from segments to nodes."""
        self.march.complete()
        dim, rods = self.grid.dim, self.rods
        strains, rest = rods.at_nodes(rods.strains), rods.at_nodes(rods.rest)
        angles = slice(3, 6) if dim == 3 else 5
        return super().frame() | {
            "rod/r": Share(rods.r[:, :dim].copy()),
            "rod/R": Share(rods.node_frames()[:, :dim, :dim].copy()),
            "rod/strain": Share(strains[:, :dim].copy()),
            "rod/curvature": Share(strains[:, angles].copy()),
            "rod/curvature_prescribed": Share(rest[:, angles].copy()),
        }

    def _series(self) -> dict[str, float]:
        noise = {
            f"noise_ratio{suffix(index)}": self.rods.noise_ratio(index)
            for index in range(len(self.rods.rods))
        }
        return super()._series() | {"elastic_energy": self._stored()} | noise

    def figures(self, run: Run) -> dict[str, float]:
        """Those of the flow, and the elastic energy at start and end."""
        elastic = run.series["elastic_energy"]
        late = slice(-max(1, len(elastic) // 10), None)
        noise = {
            f"noise_ratio{suffix(index)}": float(
                run.series[f"noise_ratio{suffix(index)}"][late].max()
            )
            for index in range(len(self.rods.rods))
        }
        return (
            super().figures(run)
            | noise
            | {
                "elastic_energy_initial": float(elastic[0]),
                "elastic_energy_final": float(elastic[-1]),
            }
        )


def suffix(index: int) -> str:
    """What the names of a rod's figures end with: nothing for the first, _2, _3 for others."""
    return f"_{index + 1}" if index else ""


class FormulaRest:
    """A rest strain by formulas of s and t, by column, at the places where the strain is."""

    def __init__(
        self,
        strain_s: np.ndarray,
        strain: dict[int, Formula],
        curvature_s: np.ndarray,
        curvature: dict[int, Formula],
    ) -> None:
        self._formulas = [(k, formula, strain_s) for k, formula in strain.items()]
        self._formulas += [(k, formula, curvature_s) for k, formula in curvature.items()]
        self._values = np.zeros_like(strain_s)
        self.steady = not any(formula.depends_on("t") for _, formula, _ in self._formulas)

    def fill(self, t: float, out: np.ndarray) -> None:
        """Rest strain (segment, 6) at time t."""
        out[:] = 0.0
        for column, formula, s in self._formulas:
            formula.evaluate(self._values, s, t)
            out[:, column] = self._values


def built(table: RodTable, case: RodCase) -> tuple[Rod, np.ndarray, np.ndarray]:
    """A rod, its places (node, 3) and frames (node, 3, 3) at the start."""
    dim = case.dim
    s, h = shapes.arc_length(table.nodes, table.length, table.closed)
    stretch, bend = three(table.stretch, dim), three(table.bend, 3 if dim == 3 else 1)
    stiffness = np.broadcast_to(np.diag([*stretch, *bend]), (len(h), 6, 6)).copy()
    curvature = dict(enumerate(case.rest_formulas(table.rest_curvature), 3 if dim == 3 else 5))
    strain = dict(enumerate(case.rest_formulas(table.rest_strain)))
    mechanics = MECHANICS[table.bending]
    middle = s[: len(h)] + h / 2
    ends = (s[: len(h)] + h) % table.length if table.closed else s[: len(h)] + h
    rest = FormulaRest(middle, strain, ends if mechanics.nodal else middle, curvature)
    rod = Rod(s, h, stiffness, rest, mechanics)
    if table.centre:
        r, d1, d2 = (np.zeros((len(s), 3)) for _ in range(3))
        for texts, out in ((table.centre, r), (table.d1, d1), (table.d2, d2)):
            for column, formula in enumerate(case.shape_formulas(texts)):
                out[:, column] = formula(s)
        if dim == 2:
            d2[:, 0], d2[:, 1] = -d1[:, 1], d1[:, 0]
    else:
        r, d1, d2 = shapes.SHAPES[table.shape](s, table.length)
        r[:, :dim] += table.position or np.array(case.fluid.box) / 2
    frames = shapes.frames_of(d1, d2)
    if mechanics.nodal:  # those of the segments, with d1 along them
        following = np.roll(frames, -1, axis=0) if table.closed else frames[1:]
        own = shapes.nearest_rotations(0.5 * (frames[: len(h)] + following))
        mechanics.follow(r, rod.closing, len(h), np.zeros_like(r), own, frames[: len(h)])
    return rod, r, frames


def three(value: float | list[float], count: int) -> list[float]:
    """Stiffness along d1, d2, d3; bending in a plane is about d3 alone."""
    values = value if isinstance(value, list) else [value] * count
    return {1: [1.0, 1.0, *values], 2: [*values, 1.0], 3: values}[count]


def elastic_limit(rod: RodTable, case: RodCase) -> float:
    """A step at which the explicit elastic force of a rod is stable [s]."""
    h = min(length / n for length, n in zip(case.fluid.box, case.fluid.n, strict=True))
    stretch, bend = (float(np.max(value)) for value in (rod.stretch, rod.bend))
    return largest_step(
        rod.kernel, rod.bending, case.dim, rod.dilation, h, case.fluid.density, stretch, bend
    )
