"""A flow marched in time: whole steps, or as many parts as Courant number or error ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.fluid import kernels
from hpcsim.fluid.clock import Clock
from hpcsim.fluid.navier_stokes import Force, NavierStokes
from hpcsim.fluid.stepper import AdditiveStepper

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks

#: Steps are not made smaller than this part of dt.
SMALLEST_PART = 1e-6


@dataclass(frozen=True)
class Control:
    """How steps are chosen: `kind` fixed, courant or error, and what these go by."""

    kind: str
    courant: float
    tolerance: float
    order: int  #: of the embedded error estimate
    viscous_limit: float  #: [s]


@dataclass
class March:
    """A flow's velocity û on its way; `outside`: the force that does not come from the flow."""

    flow: NavierStokes
    stepper: AdditiveStepper
    control: Control
    ranks: Ranks
    u_hat: np.ndarray
    outside: Force | None = None
    clock: Clock = field(default_factory=Clock)
    kinetic: float = 0.0  #: of a stage of the latest step [J]
    given_up: str = ""  #: why no step was small enough
    _push: float | None = None  #: of a steady force
    _room: np.ndarray | None = None

    def begin(self) -> None:
        """Take û as the start."""
        self.clock = Clock(given=self.energies()[0])
        self.kinetic, self.given_up = self.clock.given, ""

    def advance(self, step: int, count: int, dt: float) -> None:
        """`count` steps of dt from step number `step`."""
        take = {"fixed": self.whole, "courant": self._by_courant, "error": self._by_error}
        for number in range(step, step + count):
            take[self.control.kind](number * dt, dt)
            self.clock.time = (number + 1) * dt

    def whole(self, t: float, dt: float) -> None:
        """One step."""
        self.stepper.step(self.u_hat, t, dt)
        self.book(dt)

    def book(self, dt: float) -> None:
        """Add the latest step and the energy spent in it to the account, as all ranks do."""
        stepper, clock = self.stepper, self.clock
        spent = np.array([stepper.dissipated, stepper.worked, stepper.kinetic])
        dissipated, worked, self.kinetic = map(float, self.ranks.total(spent))
        clock.latest_step = dt
        clock.steps += 1
        clock.dissipated += dissipated
        clock.worked += worked
        clock.worked_size += abs(worked)

    def _by_courant(self, t: float, dt: float) -> None:
        """Equal parts such that h (Σ|u|/Δ + h Σ|f|/(ρ Δ)) ≤ Courant number, seen anew each time."""
        done, parts = 0.0, 1
        while parts:
            left = dt - done
            rate, push = self.courant_rate(), self._largest_push(t + done)
            twice = rate + math.sqrt(rate**2 + 4 * push * self.control.courant)
            most = max(twice / (2 * self.control.courant), 1 / self.control.viscous_limit)
            if not left * most < 1 / SMALLEST_PART:
                self.given_up = f"a Courant number of {self.control.courant:g}"
                return
            parts = max(1, math.ceil(left * most - 1e-9))
            self.whole(t + done, left / parts)
            done += left / parts
            parts -= 1

    def _by_error(self, t: float, dt: float) -> None:
        """Steps whose embedded error is below the tolerance; the next size from the last error."""
        done = 0.0
        while done < dt * (1 - 1e-12):
            left = dt - done
            h = min(self.clock.next_step or dt, left)
            h = left / math.ceil(left / h - 1e-9)
            scale = 2 * self.energies()[0] / (self.flow.density * self.flow.grid.volume)
            self.stepper.step(self.u_hat, t + done, h)
            (square,) = self.ranks.total(np.array([self.stepper.error(h)]))
            error = math.sqrt(square) / (self.control.tolerance * math.sqrt(scale or 1.0))
            if not math.isfinite(error) or h < SMALLEST_PART * dt:
                self.given_up = f"an error of {self.control.tolerance:g}"
                return
            factor = 0.9 * max(error, 1e-10) ** (-1 / (self.control.order + 1))
            self.clock.next_step = h * min(4.0, max(0.2, factor))
            if error > 1:
                self.stepper.undo(self.u_hat)
                continue
            self.book(h)
            done += h

    # ---- what steps go by, the same on all ranks ----

    def energies(self) -> tuple[float, float]:
        """Kinetic energy [J] and dissipation [W]."""
        kinetic, dissipation = self.ranks.total(np.array(self.flow.energies(self.u_hat)))
        return float(kinetic), float(dissipation)

    def courant_rate(self) -> float:
        """Largest Σ|u|/Δ [1/s]."""
        return self._largest(self.flow.velocity(self.u_hat))

    def _largest_push(self, t: float) -> float:
        """Largest Σ|f|/(ρ Δ) of the outside force [1/s²]."""
        if self.outside is None:
            return 0.0
        if self._push is None or not self.outside.steady:
            if self._room is None:
                self._room = self.flow.transform.physical(self.flow.dim)
            self.outside.fill(t, self._room, self._room)
            self._push = self._largest(self._room) / self.flow.density
        return self._push

    def _largest(self, vectors: np.ndarray) -> float:
        rate = kernels.largest_courant(vectors, self.flow.inverse_spacing)
        return self.ranks.vote(rate if math.isfinite(rate) else math.inf)[0]
