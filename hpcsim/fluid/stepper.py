"""One additive Runge-Kutta step for every tableau: convection explicit, viscosity implicit.

    (1 + h aI_jj ν λ) û_j = P [û + h Σ_{k<j} aE_jk ĝ_k − h ν λ Σ_{k<j} aI_jk û_k]

P is the projection on solenoidal velocities. The step ends on its last stage (`closed` pairs).
Where both halves are equal (explicit schemes) the viscous term is part of ĝ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcsim.fluid import kernels
from hpcsim.fluid.navier_stokes import NavierStokes
from hpcsim.time.tableaux import AdditivePair


@dataclass(frozen=True)
class Weights:
    """What a stage takes of û (times λ), of the kept rates and stages, and of itself; per h."""

    own: float
    rates: np.ndarray
    stages: np.ndarray
    diagonal: float


class Layout:
    """Which rates and stages of a pair are kept, and where; `arrays`: how many that makes."""

    def __init__(self, pair: AdditivePair, estimates_error: bool) -> None:
        pair = pair.closed()
        self.pair = pair
        #: Explicit schemes: the viscous term is part of the rate.
        self.merged = bool(np.array_equal(pair.a_implicit, pair.a_explicit))
        self.a_implicit = np.zeros_like(pair.a_implicit) if self.merged else pair.a_implicit
        #: What error weights take of the rates and of the stages.
        self.errors = np.zeros((2, pair.stages))
        if estimates_error and pair.embedded is not None:
            self.errors = np.array([pair.b_explicit, pair.b_implicit]) - pair.embedded
            self.errors[1] *= not self.merged
        above = np.vstack([pair.a_explicit, self.errors[0]])
        below = np.vstack([np.tril(self.a_implicit, -1), self.errors[1]])
        inner = np.arange(pair.stages)  # stage 0 is û, the last one becomes it
        inside = (inner > 0) & (inner < pair.stages - 1)
        self.rate_slot = slots(np.any(above, axis=0))
        self.stage_slot = slots(np.any(below, axis=0) & inside)
        # perhaps one more, for a stage that is used at once and not again, and for the error
        self.spare = int(estimates_error or len(self.stage_slot) < pair.stages - 2)
        self.arrays = len(self.rate_slot) + len(self.stage_slot) + self.spare + estimates_error


class AdditiveStepper:
    """Steps of a flow; keeps the stages that later stages need, and the energy spent in a step."""

    def __init__(
        self, flow: NavierStokes, pair: AdditivePair, estimates_error: bool = False
    ) -> None:
        layout = Layout(pair, estimates_error)
        pair = layout.pair
        self.flow, self.stages, self.merged = flow, pair.stages, layout.merged
        self.c, self.b_explicit, self.b_implicit = pair.c, pair.b_explicit, pair.b_implicit
        self._rate_slot, self._stage_slot = layout.rate_slot, layout.stage_slot
        a, errors = layout.a_implicit, layout.errors
        self._weights = [
            self._arranged(pair.a_explicit[j], np.append(a[j, :j], 0.0), a[j, j])
            for j in range(pair.stages)
        ]
        self._error_weights = self._arranged(errors[0], errors[1], 0.0) if estimates_error else None
        shape = flow.transform.spectral(flow.dim).shape
        self._rates = np.zeros((len(self._rate_slot), *shape), np.complex128)
        self._stages = np.zeros((len(self._stage_slot) + layout.spare, *shape), np.complex128)
        self._old = np.zeros(shape, np.complex128) if estimates_error else None
        #: Dissipated energy and work of the force in the latest step, and the kinetic energy of one
        #: of its stages [J]: this rank's parts.
        self.dissipated = self.worked = self.kinetic = 0.0

    def _arranged(self, explicit: np.ndarray, implicit: np.ndarray, diagonal: float) -> Weights:
        """A row of both tableaux in the order of the slots."""
        nu = self.flow.nu
        rates = np.zeros(len(self._rate_slot))
        stages = np.zeros(len(self._stage_slot))
        for k, slot in self._rate_slot.items():
            rates[slot] = explicit[k]
        for k, slot in self._stage_slot.items():
            stages[slot] = nu * implicit[k] if k < len(implicit) else 0.0
        return Weights(nu * implicit[0], rates, stages, nu * diagonal)

    def step(self, u_hat: np.ndarray, t: float, h: float) -> None:
        """û(t) → û(t + h), in place."""
        self.dissipated = self.worked = 0.0
        if self._old is not None:
            self._old[:] = u_hat
        for j in range(self.stages):
            kept = j in (0, self.stages - 1)
            stage = u_hat if kept else self._stages[self._stage_slot.get(j, -1)]
            if j:
                self._combine(self._weights[j], h, 1.0, u_hat, stage)
            if self.b_implicit[j]:
                self.kinetic, dissipation = self.flow.energies(stage)
                self.dissipated += h * self.b_implicit[j] * dissipation
            if j in self._rate_slot:
                self._evaluate(j, stage, t + self.c[j] * h)
                self.worked += h * self.b_explicit[j] * self.flow.power

    def _evaluate(self, j: int, stage: np.ndarray, t: float) -> None:
        rate = self._rates[self._rate_slot[j]]
        self.flow.rate(stage, t, rate)
        if self.merged:
            kernels.subtract_viscous(
                stage.view(np.float64),
                self.flow.nu,
                *self.flow.symbols.laplacian,
                rate.view(np.float64),
            )

    def _combine(
        self, weights: Weights, h: float, keep: float, u_hat: np.ndarray, out: np.ndarray
    ) -> None:
        kernels.combine(
            u_hat.view(np.float64),
            keep,
            h * weights.own,
            self._rates.view(np.float64),
            h * weights.rates,
            self._stages.view(np.float64),
            h * weights.stages,
            h * weights.diagonal,
            *self.flow.symbols.laplacian,
            *self.flow.symbols.gradient,
            out.view(np.float64),
        )

    # ---- error control ----

    def error(self, h: float) -> float:
        """Σ |error|² over this rank's modes of the latest step, by the embedded weights."""
        assert self._old is not None
        assert self._error_weights is not None
        out = self._stages[-1]
        self._combine(self._error_weights, h, 0.0, self._old, out)
        view = out.view(np.float64)
        symbols = self.flow.symbols
        return float(kernels.weighted_sums(view, view, symbols.weight, *symbols.laplacian)[0])

    def undo(self, u_hat: np.ndarray) -> None:
        """Go back to the start of the latest step."""
        assert self._old is not None
        u_hat[:] = self._old


def slots(needed: np.ndarray) -> dict[int, int]:
    """Places in memory of the stages that are needed later."""
    return {int(stage): slot for slot, stage in enumerate(np.flatnonzero(needed))}
