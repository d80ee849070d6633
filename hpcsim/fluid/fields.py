"""Fields that a case gives by formulas, and random solenoidal fields of a given spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcsim.fluid import kernels
from hpcsim.formula import Formula

if TYPE_CHECKING:
    from hpcsim.fluid.navier_stokes import NavierStokes
    from hpcsim.parallel.ranks import Ranks


class FormulaFlow:
    """A velocity and perhaps a pressure as formulas of x, y[, z], t."""

    def __init__(
        self, velocity: Sequence[Formula], pressure: Formula | None, points: list[np.ndarray]
    ) -> None:
        self._velocity, self._pressure, self._points = velocity, pressure, points
        self.has_pressure = pressure is not None

    def velocity(self, t: float, out: np.ndarray) -> None:
        """u at time t, (component, x, y, z)."""
        for formula, component in zip(self._velocity, out, strict=True):
            formula.evaluate(component, *self._points, t)

    def pressure(self, t: float, out: np.ndarray) -> None:
        """p at time t, (x, y, z)."""
        assert self._pressure is not None
        self._pressure.evaluate(out, *self._points, t)


class FormulaForce:
    """A body force f and a couple density m, which acts as ½ D × m.

    That is the divergence of the antisymmetric tensor T_ab = ½ ε_abc m_c, taken with the gradient
    of the operators. 2D: m is one number, about the axis that is missing.
    """

    def __init__(
        self,
        body: Sequence[Formula],
        couple: Sequence[Formula],
        points: list[np.ndarray],
        flow: NavierStokes,
    ) -> None:
        self._body, self._couple, self._points, self._flow = body, couple, points, flow
        self.steady = not any(formula.depends_on("t") for formula in (*body, *couple))
        transform = flow.transform
        self._part = transform.physical(1)[0]
        if couple:
            self._couple_space = transform.physical(len(couple))
            self._couple_hat = transform.spectral(len(couple))
            self._force_hat = transform.spectral(flow.dim)

    def fill(self, t: float, u: np.ndarray, out: np.ndarray) -> None:
        """The force density at time t, (component, x, y, z)."""
        out[:] = 0.0
        if self._couple:
            self._fill_couple(t, out)
        for formula, component in zip(self._body, out, strict=False):
            formula.evaluate(self._part, *self._points, t)
            component += self._part

    def _fill_couple(self, t: float, out: np.ndarray) -> None:
        flow, m_hat, f_hat = self._flow, self._couple_hat, self._force_hat
        for formula, component in zip(self._couple, self._couple_space, strict=True):
            formula.evaluate(component, *self._points, t)
        flow.transform.forward(self._couple_space, m_hat)
        turn = kernels.curl if flow.dim == 3 else kernels.turned_gradient
        factor = 0.5 / flow.transform.points
        turn(m_hat.view(np.float64), *flow.symbols.gradient, factor, f_hat.view(np.float64))
        flow.transform.backward(f_hat, out)


def shells(flow: NavierStokes) -> tuple[np.ndarray, np.ndarray]:
    """Shell number of every mode of this rank, (x, y, z), and the wavenumber of each shell [1/m].

    Shells are as thick as the smallest wavenumber of the box; a mode belongs to the nearest.
    """
    grid = flow.grid
    unit = 2 * np.pi / max(grid.box)
    square = np.zeros((1, 1, 1))
    for axis, length in zip(grid.axes, grid.box, strict=True):
        shape = [1, 1, 1]
        shape[axis] = -1
        square = square + ((2 * np.pi / length) * flow.transform.modes[axis].reshape(shape)) ** 2
    number = np.rint(np.sqrt(square) / unit).astype(np.int64)
    highest = np.sqrt(
        sum((np.pi * n / length) ** 2 for n, length in zip(grid.n, grid.box, strict=True))
    )
    return number, unit * np.arange(int(np.rint(highest / unit)) + 1)


def spectrum(
    flow: NavierStokes, u_hat: np.ndarray, number: np.ndarray, count: int, ranks: Ranks
) -> np.ndarray:
    """½|û|² summed over each shell [m²/s²]: the energy per mass of the box, by wavenumber."""
    energy = np.zeros(count)
    kernels.shell_sums(u_hat.view(np.float64), flow.symbols.weight, number, energy)
    return ranks.total(energy)


def random_velocity(
    flow: NavierStokes, energy: float, peak: float, seed: int, ranks: Ranks
) -> np.ndarray:
    """û of a random solenoidal field with E(k) ∝ k⁴ exp(−2 (k/peak)²), ½⟨|u|²⟩ = energy.

    Every row of modes has its own stream of random numbers, so the field does not depend on the
    number of ranks. `peak` is in units of the smallest wavenumber of the box.
    """
    transform = flow.transform
    u_hat = transform.spectral(flow.dim)
    nx, ny, nz = transform.shape
    ky, kz = transform.modes[1] % ny, transform.modes[2]
    for x, k in enumerate(transform.modes[0]):
        stream = np.random.Generator(np.random.Philox([seed, int(k) % nx]))
        row = stream.standard_normal((flow.dim, ny, nz // 2 + 1, 2))
        u_hat[x] = row.view(np.complex128)[:, ky][:, :, kz, 0]
    u = transform.physical(flow.dim)
    transform.backward(u_hat, u)  # the real part: a Hermitian spectrum
    u_hat = flow.coefficients(u)
    flow.project(u_hat)
    if flow.symbols.mean:
        x, y, z = flow.symbols.mean
        u_hat[x, :, y, z] = 0.0
    number, k = shells(flow)
    found = spectrum(flow, u_hat, number, len(k), ranks)
    ratio = np.arange(1, len(k)) / peak
    logarithm = np.where(found[1:] > 0, 4 * np.log(ratio) - 2 * ratio**2, -np.inf)
    wanted = np.append(0.0, np.exp(logarithm - logarithm.max()))
    wanted *= energy / wanted.sum()
    factor = np.sqrt(np.divide(wanted, found, out=np.zeros_like(found), where=found > 0))
    u_hat *= factor[number][:, None]
    return u_hat
