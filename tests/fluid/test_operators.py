"""Operators: symbols are those of the stencils, gradient and divergence exact adjoints, orders."""

import numpy as np
import pytest

from hpcsim.fluid import kernels
from hpcsim.fluid.operators import OPERATORS
from tests.fluid.flows import make_flow, random_solenoidal

STENCILS = [name for name, entry in OPERATORS.items() if entry.gradient]
SPACING = (1.0, 1.3, 0.7)  # cells need not be cubes


def derivative(entry, f, axis, h):
    """The stencil of the gradient, by rolling."""
    return sum(
        d * (np.roll(f, -m, axis) - np.roll(f, m, axis)) / h
        for m, d in enumerate(entry.gradient, start=1)
    )


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("n", [7, 8])
def test_symbols_belong_to_the_stencils(name, n):
    entry, h = OPERATORS[name], 0.3
    f = np.random.default_rng(1).normal(size=n)
    k = np.fft.fftfreq(n, 1 / n).astype(int)
    f_hat = np.fft.fft(f)
    np.testing.assert_allclose(
        np.fft.ifft(1j * entry.gradient_symbol(k, n, h) * f_hat).real,
        derivative(entry, f, 0, h),
        atol=1e-13,
    )
    laplacian = entry.laplacian[0] * f + sum(
        w * (np.roll(f, -m) + np.roll(f, m)) for m, w in enumerate(entry.laplacian) if m
    )
    np.testing.assert_allclose(
        np.fft.ifft(-entry.laplacian_symbol(k, n, h) * f_hat).real, laplacian / h**2, atol=1e-12
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_spatial_order(name):
    """Errors of both symbols at a fixed mode fall with the order; spectral has none."""
    entry = OPERATORS[name]
    errors = []
    for n in (32, 64):
        k, h = np.array([3]), 2 * np.pi / n
        gradient = abs(entry.gradient_symbol(k, n, h)[0] - 3)
        errors.append((gradient, abs(entry.laplacian_symbol(k, n, h)[0] - 9)))
    if entry.order is None:
        assert np.max(errors) < 1e-13
    else:
        orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
        np.testing.assert_allclose(orders, entry.order, atol=0.1)


@pytest.mark.parametrize(("n", "count"), [((8, 6, 10), 8), ((8, 7, 10), 4), ((7, 5, 9), 1)])
@pytest.mark.parametrize("name", STENCILS)
def test_null_modes_are_counted_by_integers(name, n, count):
    flow = make_flow(n, name)
    s0, s1, s2 = flow.symbols.gradient
    square = s0[:, None, None] ** 2 + s1[:, None] ** 2 + s2[::2] ** 2
    weight = np.broadcast_to(flow.symbols.weight[::2], square.shape)
    assert weight[square == 0].sum() == count


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", [(8, 6, 10), (7, 9, 5), (12, 10), (9, 7)])
def test_divergence_is_minus_the_adjoint_of_the_gradient(name, n):
    """<D·u, p> = −<u, D p> in Fourier space, for random spectra of real fields."""
    box = tuple(h * k for h, k in zip(SPACING, n, strict=False))
    flow = make_flow(n, name, box=box)
    dim = flow.dim
    rng = np.random.default_rng(2)
    u_hat = flow.coefficients(rng.normal(size=(dim, *flow.transform.shape)))
    p_hat = flow.coefficients(rng.normal(size=(1, *flow.transform.shape)))
    d_hat = flow.transform.spectral(1)
    symbols = flow.symbols
    kernels.divergence(u_hat.view(float), *symbols.gradient, d_hat.view(float))
    gradient = np.zeros_like(u_hat)
    s0, s1, s2 = symbols.gradient
    for c, axis in enumerate(flow.grid.axes):
        s = (s0[:, None, None], s1[:, None], s2[::2])[axis]
        gradient[:, c] = 1j * s * p_hat[:, 0]
    sums = [
        kernels.weighted_sums(a.view(float), b.view(float), symbols.weight, *symbols.laplacian)[0]
        for a, b in ((d_hat, p_hat), (u_hat, gradient))
    ]
    assert sums[0] == pytest.approx(-sums[1], rel=1e-12)
    assert abs(sums[0]) > 1e-6


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", [(12, 10, 8), (9, 7, 11), (16, 12), (9, 15)])
def test_convection_does_no_work_and_keeps_momentum(name, n):
    """Σ u·C(u)u = 0 and Σ C(u)u = 0 for a rough solenoidal velocity."""
    box = tuple(h * k for h, k in zip(SPACING, n, strict=False))
    flow = make_flow(n, name, box=box, kept=False)
    u_hat = random_solenoidal(flow)
    g_hat = flow.transform.spectral(flow.dim)
    flow.rate(u_hat, 0.0, g_hat)
    symbols = flow.symbols
    views = u_hat.view(float), g_hat.view(float)
    work = kernels.weighted_sums(*views, symbols.weight, *symbols.laplacian)[0]
    size = kernels.weighted_sums(views[1], views[1], symbols.weight, *symbols.laplacian)[0]
    speed = kernels.weighted_sums(views[0], views[0], symbols.weight, *symbols.laplacian)[0]
    assert abs(work) < 1e-13 * np.sqrt(size * speed)
    x, y, z = symbols.mean
    assert np.abs(g_hat[x, :, y, z]).max() < 1e-13 * np.sqrt(size)
    assert size > 1e-3


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("n", [(6, 5, 7), (4, 4, 4), (8, 9), (4, 5)])
def test_skew_convection_is_the_mean_of_both_forms(name, n):
    """½ [u·D u + D·(u u)] by rolling, the slow and obvious way."""
    box = tuple(h * k for h, k in zip(SPACING, n, strict=False))
    flow = make_flow(n, name, box=box, kept=False)
    u_hat = random_solenoidal(flow)
    g_hat = flow.transform.spectral(flow.dim)
    flow.rate(u_hat, 0.0, g_hat)
    g = flow.transform.physical(flow.dim)
    flow.transform.backward(g_hat, g)
    u = flow.velocity(u_hat).copy()
    entry, expected = OPERATORS[name], np.zeros_like(u)
    for c in range(flow.dim):
        for a, (axis, h) in enumerate(zip(flow.grid.axes, flow.grid.spacing, strict=True)):
            expected[c] -= 0.5 * u[a] * derivative(entry, u[c], axis, h)
            expected[c] -= 0.5 * derivative(entry, u[a] * u[c], axis, h)
    np.testing.assert_allclose(g, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
