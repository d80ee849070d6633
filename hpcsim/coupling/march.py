"""A flow with rods marched in time: rods move with each step, the account holds their work."""

from __future__ import annotations

from dataclasses import dataclass

from hpcsim.coupling.steps import Coupling
from hpcsim.fluid.march import March


@dataclass(kw_only=True)
class RodMarch(March):
    """Rods and flow on their way."""

    coupling: Coupling

    def whole(self, t: float, dt: float) -> None:
        """One step of both; the moving rest strain does its work."""
        self.coupling.begin(t, dt)
        self.flow.forget_force()
        super().whole(t, dt)
        activation = self.coupling.rods.activation(t, dt)
        self.clock.worked += activation
        self.clock.worked_size += abs(activation)

    def book(self, dt: float) -> None:
        """As for a flow, but what rods do on the fluid is no work from outside."""
        if self.outside is None:
            self.stepper.worked = 0.0
        super().book(dt)
        self._book_rods()

    def complete(self) -> None:
        """Bring the rods to the end of the latest step, so that they can be seen."""
        if not self.coupling.pending:
            return
        self.coupling.complete(self.flow.velocity(self.u_hat))
        self._book_rods()
        self.coupling.rods.load(self.clock.time)

    def _book_rods(self) -> None:
        """Take what rods did on the fluid out of the work of all forces."""
        if self.outside is not None:
            self.clock.worked -= self.coupling.worked
        self.coupling.worked = 0.0
