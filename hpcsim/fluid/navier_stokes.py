"""The rate of change of the velocity, in Fourier space, with the fewest transforms.

    û' = P ĝ − ν λ û,   g = −C(u)u + f/ρ,   P the projection on D·u = 0

Stencil operators: u goes back (d transforms), convection in skew form, −C(u)u + f/ρ goes forward
(d). Spectral: u goes back (d), the products u_i u_j − δ_ij u_d² go forward (2 in 2D, 5 in 3D), a
force is transformed by itself, once if it is steady. Both forms satisfy Σ u·C(u)u = 0 to rounding.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hpcsim.fluid import kernels
from hpcsim.fluid.grid import Grid, Symbols, Transform
from hpcsim.fluid.operators import Operators


class Force(Protocol):
    """A body force density [N/m³]; `steady`: does not change until the flow is told so."""

    steady: bool

    def fill(self, t: float, u: np.ndarray, out: np.ndarray) -> None:
        """Write the force at time t, where the velocity is u, into (component, x, y, z)."""
        ...


def transform_components(dim: int, operators: Operators) -> tuple[int, ...]:
    """Numbers of components that the transforms of a flow have."""
    products = {2: 2, 3: 5}[dim] if operators.truncated else dim
    return tuple(sorted({1, dim, products}))


class NavierStokes:
    """The flow's equations on this rank's part of the grid; arrays are made once."""

    def __init__(
        self,
        grid: Grid,
        operators: Operators,
        transform: Transform,
        density: float,
        viscosity: float,
        keeps_mean: bool = True,
    ) -> None:
        self.grid, self.operators, self.transform = grid, operators, transform
        self.density = density
        self.nu = viscosity / density
        self.force: Force | None = None
        self.keeps_mean = keeps_mean
        self.symbols = Symbols(grid, operators, transform.modes)
        self.inverse_spacing = 1 / np.array(grid.spacing)
        #: Power of the force at the latest rate [W], this rank's part.
        self.power = 0.0
        dim, halo = grid.dim, operators.width
        if operators.truncated:
            components = transform_components(dim, operators)[-1]
            self._space = transform.physical(components)
            self._products = transform.spectral(components)
        else:
            weights = np.array(operators.gradient)
            self._coefficients = 0.5 * np.outer(self.inverse_spacing, weights)
            self._space = transform.physical(dim, halo)
            self._rate = transform.physical(dim)
            self._halo = transform.halo(halo)
            self._convect = kernels.skew_convection(dim, halo)

    def drive(self, force: Force) -> None:
        """Let a force act from now on."""
        self.force = force
        self._force_space = self.transform.physical(self.dim)
        if self.operators.truncated:
            self._force_hat = self.transform.spectral(self.dim)
        self.forget_force()

    def forget_force(self) -> None:
        """A steady force has changed: it is evaluated anew, once."""
        self._force_known = False

    @property
    def dim(self) -> int:
        """Number of components of the velocity."""
        return self.grid.dim

    def velocity(self, u_hat: np.ndarray) -> np.ndarray:
        """u of this rank's points, (component, x, y, z): a view that the next call overwrites."""
        width = self.operators.width
        inside = self._space[: self.dim, width : self._space.shape[1] - width]
        self.transform.backward(u_hat, inside)
        return inside

    def rate(self, u_hat: np.ndarray, t: float, g_hat: np.ndarray) -> None:
        """ĝ at time t, not projected: it also holds the gradient that the pressure balances."""
        u = self.velocity(u_hat)
        if self.force is not None:
            self._evaluate_force(self.force, t, u)
        if self.operators.truncated:
            self._spectral_rate(g_hat.view(np.float64))
        else:
            self._stencil_rate(g_hat)
        if self.keeps_mean and self.symbols.mean:
            x, y, z = self.symbols.mean
            given = float(g_hat[x, :, y, z].real @ u_hat[x, :, y, z].real)
            self.power -= self.density * self.grid.volume * given  # the mean flow does not get it
            g_hat[x, :, y, z] = 0.0

    def _evaluate_force(self, force: Force, t: float, u: np.ndarray) -> None:
        """The force at time t where it is needed, and its power."""
        if not self._force_known:
            force.fill(t, u, self._force_space)
            if self.operators.truncated:
                self.transform.forward(self._force_space, self._force_hat)
            self._force_known = force.steady
        cell = self.grid.volume / self.transform.points
        self.power = cell * kernels.dot(self._force_space, u)

    def _stencil_rate(self, g_hat: np.ndarray) -> None:
        points = self.transform.points
        self._halo.fill(self._space)
        self._convect(self._space, self._coefficients, 1 / points, self._rate)
        if self.force is not None:
            kernels.add(self._rate, self._force_space, 1 / (self.density * points))
        self.transform.forward(self._rate, g_hat)

    def _spectral_rate(self, g: np.ndarray) -> None:
        points = self.transform.points
        kernels.products(self._space)
        self.transform.forward(self._space, self._products)
        gradient = self.symbols.gradient
        kernels.flux_divergence(self._products.view(np.float64), *gradient, 1 / points, g)
        if self.force is not None:
            kernels.add(g, self._force_hat.view(np.float64), 1 / (self.density * points))

    def pressure(self, u_hat: np.ndarray, t: float, p: np.ndarray) -> None:
        """p [Pa], mean zero, from D·D p = ρ D·g at time t; p (1, x, y, z)."""
        g_hat, p_hat = self.transform.spectral(self.dim), self.transform.spectral(1)
        self.rate(u_hat, t, g_hat)
        kernels.pressure(g_hat.view(np.float64), *self.symbols.gradient, p_hat.view(np.float64))
        self.transform.backward(p_hat, p)
        if self.operators.truncated:  # the last component's square was left out of the products
            u = self.velocity(u_hat)
            square, spectrum = u[-1:] ** 2, p_hat
            self.transform.forward(square, spectrum)
            if self.symbols.mean:
                x, y, z = self.symbols.mean
                spectrum[x, :, y, z] = 0.0
            self.transform.backward(spectrum, square)
            p -= square / self.transform.points
        p *= self.density

    # ---- what is derived from the velocity ----

    def energies(self, u_hat: np.ndarray) -> tuple[float, float]:
        """Kinetic energy [J] and dissipation μ Σ λ|û|² [W] of this rank's modes."""
        u = u_hat.view(np.float64)
        plain, curved = kernels.weighted_sums(u, u, self.symbols.weight, *self.symbols.laplacian)
        return (
            0.5 * self.density * self.grid.volume * plain,
            self.density * self.nu * self.grid.volume * curved,
        )

    def divergence(self, u_hat: np.ndarray, d: np.ndarray) -> None:
        """D·u at this rank's points, (1, x, y, z)."""
        d_hat = self.transform.spectral(1)
        kernels.divergence(u_hat.view(np.float64), *self.symbols.gradient, d_hat.view(np.float64))
        self.transform.backward(d_hat, d)

    def vorticity_hat(self, u_hat: np.ndarray) -> np.ndarray:
        """Fourier coefficients of D × u, one component in 2D."""
        w_hat = self.transform.spectral(1 if self.dim == 2 else 3)
        kernels.curl(u_hat.view(np.float64), *self.symbols.gradient, 1.0, w_hat.view(np.float64))
        return w_hat

    def project(self, u_hat: np.ndarray) -> None:
        """Make a velocity solenoidal."""
        kernels.project(u_hat.view(np.float64), *self.symbols.gradient)

    def coefficients(self, u: np.ndarray) -> np.ndarray:
        """Fourier coefficients of a physical field (component, x, y, z)."""
        u_hat = self.transform.spectral(len(u))
        self.transform.forward(u, u_hat)
        u_hat /= self.transform.points
        return u_hat
