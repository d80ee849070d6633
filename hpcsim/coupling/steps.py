"""How rods move with the flow during a step, and when their forces act. A way is one class here.

    midpoint           r* = r_n + h/2 A*(r_n) u_n,  forces at r*,
                       r_{n+1} = r_n + h/2 A*(r*) (u_n + u_{n+1})
    forward-backward   forces at r_n,  r_{n+1} = r_n + h A*(r_n) u_{n+1}

and the same for frames, R_{n+1} = exp(Θ) R_n with Θ the turn in place of the move. u_{n+1} in space
is known once the next step begins, so a step of the rods is completed then, or before output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hpcsim.coupling.immersion import Immersion, Immersions, spin
from hpcsim.fluid.navier_stokes import Force
from hpcsim.rod.rods import Rods


class Coupling(ABC):
    """The force of rods on the fluid, the same for all of a step, and how it moves the rods.

    Another force on the fluid (`background`) acts too. `worked`: what the rods have done on the
    fluid in the steps completed so far [J]; `pending`: a step of theirs is not completed.
    """

    def __init__(
        self, rods: Rods, immersion: Immersion | Immersions, background: Force | None = None
    ) -> None:
        self.rods, self.immersion, self.background = rods, immersion, background
        self.steady = background is None or background.steady
        self.worked = 0.0
        self._r, self._frames = rods.r.copy(), rods.frames.copy()
        self._departing = self.pending = False
        self._time, self._h = 0.0, 0.0

    def begin(self, t: float, h: float) -> None:
        """A step of h from time t begins."""
        self._next, self._departing = (t, h), True

    def fill(self, t: float, u: np.ndarray, out: np.ndarray) -> None:
        """The force density of this step; the first call gives the velocity at its start."""
        if self._departing:
            self.complete(u)
            self._time, self._h = self._next
            self._depart(u)
            self._departing, self.pending = False, True
        if self.background is None:
            out[:] = 0.0
        else:
            self.background.fill(t, u, out)
        self.immersion.spread(self.rods.force, self.rods.couple, 1.0, out)

    def complete(self, u: np.ndarray) -> None:
        """End the step that is under way, if there is one: u is the velocity at its end."""
        if self.pending:
            self._arrive(u)
            self.pending = False

    @abstractmethod
    def _depart(self, u: np.ndarray) -> None:
        """Go to where the forces act, and load the rods there."""

    @abstractmethod
    def _arrive(self, u: np.ndarray) -> None:
        """Move to the end of the step."""

    def abandon(self) -> None:
        """Forget a step that is under way: another state is taken over."""
        self._departing = self.pending = False
        self.worked = 0.0

    def _work(self, part: float, velocity: np.ndarray, turn: np.ndarray) -> None:
        """Book the work of forces and couples at these velocities for a part of the step."""
        power = (self.rods.force * velocity).sum() + (self.rods.couple * turn).sum()
        self.worked += part * self._h * float(power)

    def _move(self, part: float, velocity: np.ndarray, turn: np.ndarray) -> None:
        """From the start of the step, for a part of it."""
        span = part * self._h
        self.rods.move(self._r, self._frames, span * velocity, span * turn)

    def _remember(self) -> None:
        self._r[:], self._frames[:] = self.rods.r, self.rods.frames


class Midpoint(Coupling):
    """Second order; does not grow on an oscillator."""

    def _depart(self, u: np.ndarray) -> None:
        self._remember()
        self.immersion.place(self.rods.r)
        velocity, gradient = self.immersion.interpolate(u)
        self._move(0.5, velocity, spin(gradient))
        self.immersion.place(self.rods.r)
        velocity, gradient = self.immersion.interpolate(u)
        self._start = velocity.copy(), spin(gradient)
        self.rods.load(self._time + 0.5 * self._h)

    def _arrive(self, u: np.ndarray) -> None:
        velocity, gradient = self.immersion.interpolate(u)
        twice = velocity + self._start[0], spin(gradient) + self._start[1]
        self._work(0.5, *twice)
        self._move(0.5, *twice)


class ForwardBackward(Coupling):
    """First order; symplectic, so it does not grow on an oscillator."""

    def _depart(self, u: np.ndarray) -> None:
        self._remember()
        self.immersion.place(self.rods.r)
        self.rods.load(self._time)

    def _arrive(self, u: np.ndarray) -> None:
        velocity, gradient = self.immersion.interpolate(u)
        turn = spin(gradient)
        self._work(1.0, velocity, turn)
        self._move(1.0, velocity, turn)


COUPLINGS: dict[str, type[Coupling]] = {
    "midpoint": Midpoint,
    "forward-backward": ForwardBackward,
}
