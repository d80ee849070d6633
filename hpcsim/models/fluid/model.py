"""A flow in a periodic box, from its case to its frames."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hpcsim.case.schema import Case
from hpcsim.fluid import kernels
from hpcsim.fluid.clock import Clock
from hpcsim.fluid.fields import FormulaFlow, FormulaForce, random_velocity, shells, spectrum
from hpcsim.fluid.grid import Grid
from hpcsim.fluid.manufactured import RandomFlow
from hpcsim.fluid.march import Control, March
from hpcsim.fluid.navier_stokes import NavierStokes, transform_components
from hpcsim.fluid.operators import OPERATORS
from hpcsim.fluid.stepper import AdditiveStepper, Layout
from hpcsim.models.fluid import case as cases
from hpcsim.models.fluid import pictures
from hpcsim.models.fluid.case import AXES, SAMPLE, FluidCase
from hpcsim.models.interface import Quantity
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share
from hpcsim.time.stability import real_limit
from hpcsim.transform.fftw import Effort
from hpcsim.transform.slab import SlabTransform

if TYPE_CHECKING:
    from hpcsim.output.run import Run

#: Energy that no flow can have, as a multiple of what it started with and forces gave it.
TOO_MUCH = 100.0
#: A part of the starting energy that may go unsaid when the velocity is made solenoidal.
UNSAID = 0.01
#: Steps under control that fit into a step of dt = "auto".
PARTS = 8
#: What a process holds besides its fields [bytes]: the interpreter, libraries, compiled code.
PROCESS_BYTES = 200 << 20


class Fluid:
    """Incompressible Navier-Stokes on slabs; the state is û, all else follows from it."""

    schema: ClassVar[type[Case]] = FluidCase
    size_key = "fluid.n"
    draw_pictures = staticmethod(pictures.draw_pictures)
    draw_frame = staticmethod(pictures.draw_frame)

    # ---- before the run ----

    @classmethod
    def problems(cls, case: FluidCase) -> list[tuple[str, str]]:
        """What is wrong between keys."""
        return cases.problems(case)

    @classmethod
    def settle(cls, case: FluidCase) -> tuple[FluidCase, list[str]]:
        """A Reynolds number becomes a viscosity; controlled steps get something to divide."""
        if case.fluid.reynolds:
            changes = {"viscosity": 1 / case.fluid.reynolds, "density": 1.0}
            case = case.model_copy(update={"fluid": case.fluid.model_copy(update=changes)})
        if case.time.control != "fixed" and case.time.dt == "auto":
            dt = min(case.output.every, PARTS * min(step_limits(case).values(), default=math.inf))
            case = case.model_copy(update={"time": case.time.model_copy(update={"dt": dt})})
        return case, []

    @classmethod
    def remarks(cls, case: FluidCase, ranks: int) -> list[str]:
        """Ranks that will have nothing to do."""
        planes = case.fluid.n[0]
        if ranks <= planes:
            return []
        return [f"warning: {ranks} ranks, but fluid.n[0] = {planes} planes: the surplus idles"]

    @classmethod
    def time_limits(cls, case: FluidCase) -> dict[str, float]:
        """Courant number at the starting speed, and the viscous limit of explicit schemes.

        None where steps are divided by Courant number or error: then dt is only what is divided.
        """
        return step_limits(case) if case.time.control == "fixed" else {}

    @classmethod
    def memory(cls, case: FluidCase, ranks: int) -> int:
        """Bytes per rank: spectral arrays, fields, buffers of the transform, frames."""
        fluid, dim = case.fluid, case.dim
        operators = OPERATORS[fluid.operators]
        points = math.prod(fluid.n) * -(-fluid.n[0] // ranks) / fluid.n[0]
        most = transform_components(dim, operators)[-1]
        kept = (2 / 3) ** dim if operators.truncated else 1.0
        spectral = dim * (1 + Layout(case.pair, case.time.control == "error").arrays)
        physical = most if operators.truncated else 2 * dim
        if operators.truncated:
            spectral += most
        forced = case.start.velocity == "manufactured" or case.force.body or case.force.couple
        if forced:
            physical += dim + 1 + len(case.force.couple)
            spectral += len(case.force.couple) + 2 * dim
        frame = sum(1 if name == "p" else dim for name in case.output.fields)
        # for a moment: the start, or a frame while its last field is made
        physical += max(2 * dim, frame + 2 * dim + 2)
        spectral += dim  # the state to go back to
        buffers = most * (kept / (2 / 3) if operators.truncated else 1.0) * (1 + (ranks > 1))
        return PROCESS_BYTES + int(8 * points * (spectral * kept + physical + buffers))

    # ---- set-up ----

    def __init__(self, case: FluidCase, ranks: Ranks) -> None:
        self.case, self.ranks = case, ranks
        fluid = case.fluid
        self.grid = Grid(tuple(fluid.n), tuple(fluid.box))
        operators = OPERATORS[fluid.operators]
        effort = Effort.ESTIMATE if fluid.reproducible else Effort.MEASURE
        self.transform = SlabTransform(
            fluid.n,
            ranks,
            transform_components(self.grid.dim, operators),
            operators.truncated,
            effort,
        )
        points = self.grid.coordinates(self.transform.start, self.transform.count)
        self.flow = NavierStokes(
            self.grid,
            operators,
            self.transform,
            fluid.density,
            fluid.viscosity,
            fluid.mean_flow == "kept",
        )
        self.exact: RandomFlow | FormulaFlow | None = None
        if case.start.velocity == "manufactured":
            self.exact = manufactured(case, self.grid).at(points)
            self.flow.drive(self.exact)
        elif case.force.body or case.force.couple:
            body, couple = case.formulas(case.force.body), case.formulas(case.force.couple)
            self.flow.drive(FormulaForce(body, couple, points, self.flow))
        if case.exact.velocity:
            (pressure,) = case.formulas([case.exact.pressure]) if case.exact.pressure else (None,)
            self.exact = FormulaFlow(case.formulas(case.exact.velocity), pressure, points)
        self._points = points
        self.stepper = AdditiveStepper(self.flow, case.pair, case.time.control == "error")
        self.u_hat = self.transform.spectral(self.grid.dim)
        time = case.time
        control = Control(
            time.control,
            time.courant,
            time.tolerance,
            case.pair.embedded_order or 1,
            viscous_limit(case),
        )
        self.march = self._made_march(control)
        #: Largest Σ|u|/h of the latest frame [1/s].
        self.courant_rate = 0.0
        self._shells, self._wavenumbers = shells(self.flow)
        self.quantities = self._describe()

    def _made_march(self, control: Control) -> March:
        """What takes the flow from step to step."""
        return March(self.flow, self.stepper, control, self.ranks, self.u_hat, self.flow.force)

    def _describe(self) -> dict[str, Quantity]:
        axes = AXES[: self.grid.dim]
        vector = ("component", *axes)
        described = {
            "fluid/u": Quantity(vector, "m/s"),
            "fluid/p": Quantity(axes, "Pa"),
            "fluid/vorticity": Quantity(vector if self.grid.dim == 3 else axes, "1/s"),
            "fluid/spectrum": Quantity(("shell",), "m2/s2"),
            "fluid/k": Quantity(("shell",), "1/m"),
        }
        units = {
            "kinetic_energy": "J",
            "enstrophy": "m3/s2" if self.grid.dim == 3 else "m2/s2",
            "dissipation": "W",
            "max_divergence": "1/s",
            "courant": "1",
            "momentum": "kg m/s",
            "energy_balance_error": "1",
            "velocity_error": "1",
            "pressure_error": "1",
        } | {f"momentum_{axis}": "kg m/s" for axis in axes}
        described |= {f"series/{name}": Quantity((), unit) for name, unit in units.items()}
        return described | {f"fluid/{axis}": Quantity((axis,), "m") for axis in axes}

    def prepare(self) -> None:
        """Compile the loops by a few steps on a tiny grid of this rank's own."""
        if self.grid.n == (6,) * self.grid.dim:
            return
        changes = {"n": [6] * self.grid.dim, "reproducible": True}
        tiny = self.case.model_copy(
            update={
                "fluid": self.case.fluid.model_copy(update=changes),
                "output": self.case.output.model_copy(update={"every_point": 1}),
            }
        )
        trial = Fluid(tiny, Ranks.alone())
        trial.begin()
        with np.errstate(all="ignore"):
            trial.advance(0, 1)
            trial.frame()

    def begin(self) -> list[str]:
        """Set the velocity to its start, on all ranks together; what was lost of it."""
        start, wanted = self.case.start, 0.0
        u = self.transform.physical(self.grid.dim)
        if start.velocity == "random":
            self.u_hat[:] = random_velocity(
                self.flow, start.energy, start.peak, start.seed, self.ranks
            )
        elif start.velocity != "rest":
            if isinstance(start.velocity, list):
                given = FormulaFlow(self.case.formulas(start.velocity), None, self._points)
                given.velocity(0.0, u)
            else:
                assert self.exact is not None
                self.exact.velocity(0.0, u)
            (square,) = self.ranks.total(np.array([kernels.dot(u, u)]))
            wanted = 0.5 * self.flow.density * self.grid.volume / self.transform.points * square
            self.u_hat[:] = self.flow.coefficients(u)
            self.flow.project(self.u_hat)
        self.march.begin()
        lost = 1 - self.march.clock.given / wanted if wanted > 0 else 0.0
        notes = []
        if lost >= UNSAID:
            notes.append(
                f"start.velocity: {100 * lost:.3g} % of its energy was left out: it is not "
                "solenoidal, or finer than the grid"
            )
        self.courant_rate, time = self.march.courant_rate(), self.case.time
        number = self.courant_rate * float(time.dt)
        if time.control == "fixed" and number > 2 * time.courant:
            notes.append(
                f"the Courant number is {number:.3g} at the start; "
                f"time.dt = {time.courant / self.courant_rate:.2g} would make it {time.courant:g}"
            )
        return notes

    # ---- steps ----

    def advance(self, step: int, count: int) -> None:
        """Do `count` steps of dt, or of parts of it as error or Courant number ask for."""
        self.march.advance(step, count, float(self.case.time.dt))

    def trouble(self) -> str:
        """Why the velocity is no longer finite, or has more energy than it can have."""
        march, clock = self.march, self.march.clock
        finite = np.isfinite(clock.packed).all() and np.isfinite(march.kinetic)
        # nothing is known to be too much before a force has done its first work
        grown = 0 < TOO_MUCH * clock.most < march.kinetic
        if finite and not grown and not march.given_up:
            return ""
        dt, time = float(self.case.time.dt), self.case.time
        line = "the velocity is no longer finite"
        if march.given_up:
            line = f"no step down to a millionth of time.dt keeps {march.given_up}"
        elif finite:
            line = "the velocity has grown beyond what it started with and forces gave it"
        for name, texts in (("body", self.case.force.body), ("couple", self.case.force.couple)):
            for index, text in enumerate(texts):
                for t in (clock.time - dt, clock.time):
                    if problem := cases.undefined(self.case, text, t):
                        return f"{line}: force.{name}[{index}] {problem}"
        if time.control == "fixed" and math.isfinite(self.courant_rate):
            number = self.courant_rate * dt
            line += f": its Courant number was {number:.3g} before it grew"
            if number > time.courant:
                line += f"; time.dt = {time.courant / self.courant_rate:.2g} would make it "
                line += f'{time.courant:g}, time.control = "courant" keeps it there'
        viscous = viscous_limit(self.case)
        if time.control == "fixed" and dt > viscous:
            line += f"; the explicit viscous term needs time.dt <= {viscous:.3g}"
        return line

    # ---- output ----

    def state(self) -> dict[str, Share]:
        """û, and the account of energy."""
        view = self.u_hat.view(np.float64)
        axis, start, total = self.transform.spectral_share
        wide = 2 if axis == 3 else 1
        return {
            "velocity": Share(view, axis, wide * start, wide * total),
            "clock": Share(self.march.clock.packed),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a saved velocity."""
        self.u_hat.view(np.float64)[:] = state["velocity"]
        self.march.clock = Clock.unpacked(state["clock"])
        self.march.kinetic, self.march.given_up = self.march.energies()[0], ""
        self.courant_rate = self.march.courant_rate()

    def constants(self) -> dict[str, Share]:
        """Coordinates of the recorded points, and the wavenumbers of the spectrum."""
        every = self.case.output.every_point
        found = {"fluid/k": Share(self._wavenumbers)}
        for name, n, h in zip(AXES, self.grid.n, self.grid.spacing, strict=False):
            found[f"fluid/{name}"] = Share(np.arange(0, n, every) * h)
        return found

    def frame(self) -> dict[str, Share]:
        """Scalars, spectrum, and the fields asked for."""
        series = self._series()
        shares = {f"series/{name}": Share(np.array(value)) for name, value in series.items()}
        energy = spectrum(self.flow, self.u_hat, self._shells, len(self._wavenumbers), self.ranks)
        shares["fluid/spectrum"] = Share(energy)
        fields = self.case.output.fields
        if "u" in fields:
            shares["fluid/u"] = self._field(self.flow.velocity(self.u_hat))
        if "p" in fields:
            p = self.transform.physical(1)
            self.flow.pressure(self.u_hat, self.march.clock.time, p)
            shares["fluid/p"] = self._field(p[0])
        if "vorticity" in fields:
            w_hat = self.flow.vorticity_hat(self.u_hat)
            w = self.transform.physical(w_hat.shape[1])
            self.transform.backward(w_hat, w)
            shares["fluid/vorticity"] = self._field(w if self.grid.dim == 3 else w[0])
        return shares

    def _field(self, field: np.ndarray) -> Share:
        """Every n-th point of a field (…, x, y, z) as a share of the planes."""
        every = self.case.output.every_point
        start, (n, *_) = self.transform.start, self.grid.n
        field = field[..., -start % every :: every, :, :]
        field = self.grid.view(field)[..., ::every]
        if self.grid.dim == 3:
            field = field[..., ::every, :]
        dtype = np.float32 if self.case.output.precision == "single" else np.float64
        axis = field.ndim - self.grid.dim
        return Share(field.astype(dtype, order="C"), axis, -(-start // every), -(-n // every))

    def _series(self) -> dict[str, float]:
        kinetic, dissipation = self.march.energies()
        clock, volume = self.march.clock, self.grid.volume
        w_hat = self.flow.vorticity_hat(self.u_hat)
        w = w_hat.view(np.float64)
        symbols = self.flow.symbols
        enstrophy = kernels.weighted_sums(w, w, symbols.weight, *symbols.laplacian)[0]
        d = self.transform.physical(1)
        self.flow.divergence(self.u_hat, d)
        rate = self.march.courant_rate()
        if kinetic <= 2 * clock.most:
            self.courant_rate = rate
        scale = max(clock.given, clock.worked_size) or 1.0
        spent = clock.dissipated - clock.worked
        series = {
            "kinetic_energy": kinetic,
            "dissipation": dissipation,
            "enstrophy": 0.5 * volume * float(self.ranks.total(np.array([enstrophy]))[0]),
            "max_divergence": self.ranks.vote(float(np.abs(d).max(initial=0.0)))[0],
            "courant": rate * (clock.latest_step or float(self.case.time.dt)),
            "energy_balance_error": (kinetic + self._stored() + spent - clock.given) / scale,
        }
        momentum = self._momentum()
        series["momentum"] = float(np.linalg.norm(momentum))
        for name, value in zip(AXES, momentum, strict=False):
            series[f"momentum_{name}"] = float(value)
        return series | self._errors()

    def _stored(self) -> float:
        """Energy that is not kinetic [J]."""
        return 0.0

    def _momentum(self) -> np.ndarray:
        """ρ V ⟨u⟩ [kg m/s]."""
        mean = np.zeros(self.grid.dim)
        if self.flow.symbols.mean:
            x, y, z = self.flow.symbols.mean
            mean = self.u_hat[x, :, y, z].real
        return self.flow.density * self.grid.volume * self.ranks.total(mean)

    def _errors(self) -> dict[str, float]:
        """Distance from the exact solution in the grid's L2 norm, relative to its size."""
        if self.exact is None:
            return {}
        t = self.march.clock.time
        wanted = self.transform.physical(self.grid.dim)
        self.exact.velocity(t, wanted)
        found = {"velocity_error": self._distance(self.flow.velocity(self.u_hat), wanted)}
        if self.exact.has_pressure:
            p, wanted = self.transform.physical(1), self.transform.physical(1)
            self.flow.pressure(self.u_hat, t, p)
            self.exact.pressure(t, wanted[0])
            (mean,) = self.ranks.total(np.array([wanted.sum()])) / self.transform.points
            found["pressure_error"] = self._distance(p, wanted - mean)
        return found

    def _distance(self, field: np.ndarray, wanted: np.ndarray) -> float:
        sums = np.array([((field - wanted) ** 2).sum(), (wanted**2).sum()])
        error, size = self.ranks.total(sums)
        return math.sqrt(error / size) if size > 0 else math.sqrt(error)

    def figures(self, run: Run) -> dict[str, float]:
        """Largest divergence and imbalance of energy over the frames, errors at the end."""
        series = run.series
        found = {"max_divergence": float(np.max(series["max_divergence"][:]))}
        if self.case.time.control != "fixed":
            found["controlled_steps"] = self.march.clock.steps
        found["energy_balance_error"] = float(np.abs(series["energy_balance_error"][:]).max())
        for name in ("kinetic_energy", "velocity_error", "pressure_error"):
            if name in series:
                found[name] = float(series[name][-1])
        return found


def step_limits(case: FluidCase) -> dict[str, float]:
    """Upper limits of a step [s], by name."""
    grid = Grid(tuple(case.fluid.n), tuple(case.fluid.box))
    limits = {}
    rate = sum(
        speed / h for speed, h in zip(starting_speeds(case, grid), grid.spacing, strict=True)
    )
    if rate > 0:
        limits[f"Courant number {case.time.courant:g} at the starting velocity"] = (
            case.time.courant / rate
        )
    viscous = viscous_limit(case)
    if math.isfinite(viscous):
        limits["stability of the explicit viscous term"] = viscous
    return limits


def viscous_limit(case: FluidCase) -> float:
    """Largest dt [s] at which an explicit viscous term is stable; infinite if it is implicit."""
    pair, fluid = case.pair, case.fluid
    if not np.array_equal(pair.a_implicit, pair.a_explicit) or not fluid.viscosity:
        return math.inf
    operators, grid = OPERATORS[fluid.operators], Grid(tuple(fluid.n), tuple(fluid.box))
    stiffness = sum(operators.largest_laplacian(h) for h in grid.spacing)
    return real_limit(pair) * fluid.density / (fluid.viscosity * stiffness)


def manufactured(case: FluidCase, grid: Grid) -> RandomFlow:
    """The manufactured flow of a case."""
    fluid, start = case.fluid, case.start
    return RandomFlow(grid, start.terms, start.seed, fluid.density, fluid.viscosity)


def starting_speeds(case: FluidCase, grid: Grid) -> list[float]:
    """Largest |u| of each component to expect [m/s], from a sample of points at the start."""
    start, dim = case.start, grid.dim
    if start.velocity == "random":
        return [3 * math.sqrt(2 * start.energy / dim)] * dim
    coarse = Grid(tuple(min(n, SAMPLE) for n in grid.n), grid.box)
    points = coarse.coordinates(0, coarse.n[0])
    out = np.zeros((dim, *np.broadcast_shapes(*(x.shape for x in points))))
    if start.velocity == "manufactured":
        manufactured(case, grid).at(points).velocity(0.0, out)
    elif isinstance(start.velocity, list):
        FormulaFlow(case.formulas(start.velocity), None, points).velocity(0.0, out)
    speeds = np.abs(out).max(axis=(1, 2, 3))
    if case.force.body:  # what the force can make of a fluid at rest
        FormulaFlow(case.formulas(case.force.body), None, points).velocity(0.0, out)
        push = np.abs(out).max(axis=(1, 2, 3)) / case.fluid.density
        nu = case.fluid.viscosity / case.fluid.density
        longest = max(grid.box) ** 2 / (4 * np.pi**2 * nu) if nu else math.inf
        speeds = speeds + push * min(case.time.end, longest)
    return [float(speed) if np.isfinite(speed) else 0.0 for speed in speeds]
