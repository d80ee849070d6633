"""Spreading and interpolation: adjoint, conservative, periodic, the same on any number of ranks."""

import numpy as np
import pytest

from hpcsim.coupling.immersion import Immersion, spin
from hpcsim.coupling.kernels import KERNELS
from hpcsim.fluid.grid import Grid
from hpcsim.parallel.ranks import Ranks

SPACING = (1.0, 1.3, 0.7)
#: Sums of some thousand products of size 1.
ROUNDING = 1e-13


def immersion(n, nodes, name="s4", dilation=1, gradient="indirect", ranks=None):
    ranks = ranks or Ranks.alone()
    grid = Grid(tuple(n), tuple(k * h for k, h in zip(n, SPACING, strict=False)))
    planes = ranks.block(n[0])
    dilations = (dilation,) * len(n) if isinstance(dilation, int) else dilation
    return Immersion(grid, planes, ranks, nodes, KERNELS[name], dilations, gradient)


def shape(grid, planes):
    return (grid.dim, planes, *((1, grid.n[1]) if grid.dim == 2 else grid.n[1:]))


def random_rod(nodes, seed=1):
    rng = np.random.default_rng(seed)
    r = rng.uniform(-30.0, 30.0, (nodes, 3))  # several periods away too
    return r, rng.normal(size=(nodes, 3)), rng.normal(size=(nodes, 3))


def check_adjoint(n, ranks, **options):
    body = immersion(n, 7, ranks=ranks, **options)
    start, count = ranks.block(n[0])
    whole = np.random.default_rng(2).normal(size=shape(body.grid, n[0]))
    u = whole[:, start : start + count].copy()
    r, force, couple = random_rod(7)
    if len(n) == 2:
        r[:, 2] = force[:, 2] = couple[:, 0] = couple[:, 1] = 0.0
    body.place(r)
    f = np.zeros_like(u)
    body.spread(force, couple, 1.0, f)
    cell = np.prod(body.grid.spacing)
    (on_grid,) = ranks.total(np.array([cell * (f * u).sum()]))
    velocity, gradient = body.interpolate(u)
    on_rod = (force * velocity).sum() + (couple * spin(gradient)).sum()
    size = np.abs(force * velocity).sum() + np.abs(couple * spin(gradient)).sum()
    assert abs(on_grid - on_rod) < ROUNDING * size
    assert size > 0.1
    return f, velocity, gradient


GRIDS = [(9, 8, 11), (12, 10)]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("gradient", ["indirect", "direct"])
@pytest.mark.parametrize("n", GRIDS)
def test_spreading_is_the_adjoint_of_interpolation(name, gradient, n):
    check_adjoint(n, Ranks.alone(), name=name, gradient=gradient)


@pytest.mark.parametrize("gradient", ["indirect", "direct"])
def test_adjoint_with_a_dilation_for_each_axis(gradient):
    check_adjoint((13, 9, 12), Ranks.alone(), dilation=(2, 1, 3), gradient=gradient)


@pytest.mark.mpi
@pytest.mark.parametrize("gradient", ["indirect", "direct"])
@pytest.mark.parametrize("n", [*GRIDS, (2, 8, 8)])
def test_ranks_share_the_work(n, gradient, ranks):
    """Adjoint over all ranks; what they spread and find together is what one rank does alone."""
    f, velocity, gradients = check_adjoint(n, ranks, gradient=gradient)
    alone, *expected = check_adjoint(n, Ranks.alone(), gradient=gradient)
    start, count = ranks.block(n[0])
    np.testing.assert_array_equal(f, alone[:, start : start + count])
    for mine, theirs in zip((velocity, gradients), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=ROUNDING * np.abs(theirs).max())


@pytest.mark.parametrize("gradient", ["indirect", "direct"])
def test_gradient_is_the_adjoint_of_the_divergence_of_tensors(gradient):
    """<∇A ζ, T> = −<ζ, A*∇·T>: a couple is spread by the same gradient that is interpolated."""
    n = (9, 8, 10)
    body = immersion(n, 1, gradient=gradient)
    body.place(np.array([[3.3, 4.4, 2.2]]))
    u = np.random.default_rng(3).normal(size=shape(body.grid, 9))
    _, gradients = body.interpolate(u)
    for axis in range(3):
        f = np.zeros_like(u)
        body.spread(np.zeros((1, 3)), np.eye(3)[[axis]], 1.0, f)
        power = np.prod(body.grid.spacing) * (f * u).sum()
        assert power == pytest.approx(spin(gradients)[0, axis], rel=1e-12)


@pytest.mark.parametrize("name", [name for name, k in KERNELS.items() if k.moments >= 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_force_and_torque_arrive_whole(name, dilation):
    """Σ w f = Σ F;  Σ w x × f = Σ (r × F + N), for kernels that reproduce linear functions."""
    n = (16, 17, 18)
    body = immersion(n, 5, name, dilation)
    rng = np.random.default_rng(4)
    middle = np.array(body.grid.box) / 2
    r = middle + rng.uniform(-1, 1, (5, 3))  # so that nothing crosses the boundary
    force, couple = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    body.place(r)
    f = np.zeros((3, *n))
    body.spread(force, couple, 1.0, f)
    cell = np.prod(body.grid.spacing)
    np.testing.assert_allclose(cell * f.sum(axis=(1, 2, 3)), force.sum(0), rtol=0, atol=1e-12)
    x = np.array(np.broadcast_arrays(*body.grid.coordinates(0, n[0])))
    torque = cell * np.cross(x, f, axis=0).sum(axis=(1, 2, 3))
    expected = (np.cross(r, force) + couple).sum(0)
    np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("gradient", ["indirect", "direct"])
@pytest.mark.parametrize("name", ["s4", "s6", "spl2", "i6"])
def test_linear_flow_is_interpolated_exactly(name, gradient):
    """u = G x has velocity G r and gradient G at every node (away from the boundary)."""
    n = (20, 18, 22)
    body = immersion(n, 4, name, gradient=gradient)
    rng = np.random.default_rng(5)
    g = rng.normal(size=(3, 3))
    x = np.array(np.broadcast_arrays(*body.grid.coordinates(0, n[0])))
    r = np.array(body.grid.box) / 2 + rng.uniform(-1, 1, (4, 3))
    body.place(r)
    velocity, gradients = body.interpolate(np.ascontiguousarray(np.einsum("ab,bxyz->axyz", g, x)))
    np.testing.assert_allclose(velocity, r @ g.T, rtol=0, atol=1e-12 * 50)
    np.testing.assert_allclose(gradients, np.broadcast_to(g, (4, 3, 3)), rtol=0, atol=1e-11)


def test_rod_that_left_the_box_is_the_same():
    """Nodes moved by whole boxes, differently along each axis, spread and find the same."""
    n = (9, 8, 10)
    body = immersion(n, 6)
    r, force, couple = random_rod(6)
    u = np.random.default_rng(6).normal(size=shape(body.grid, 9))
    results = []
    for shift in ((0, 0, 0), (3, -2, 7)):
        body.place(r + np.array(shift) * body.grid.box)
        f = np.zeros_like(u)
        body.spread(force, couple, 1.0, f)
        results.append((f, *(part.copy() for part in body.interpolate(u))))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_plane_flow_is_the_section_of_one_in_space():
    """2D velocity, gradient and spread densities are those of 3D with nothing along z."""
    plane, space = immersion((10, 9), 3), immersion((10, 9, 8), 3)
    rng = np.random.default_rng(7)
    r = rng.uniform(0, 9, (3, 3)) * [1, 1, 0]
    u = rng.normal(size=(2, 10, 1, 9))
    deep = np.zeros((3, 10, 9, 8))
    deep[:2] = u[:, :, 0, :, None]
    plane.place(r)
    space.place(r)
    for mine, theirs in zip(plane.interpolate(u), space.interpolate(deep), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    force, couple = rng.normal(size=(3, 3)) * [1, 1, 0], rng.normal(size=(3, 3)) * [0, 0, 1]
    flat, solid = np.zeros_like(u), np.zeros_like(deep)
    plane.spread(force, couple, 1.0, flat)
    space.spread(force, couple, 1.0, solid)
    summed = solid.sum(axis=3)[:2] * SPACING[2]
    np.testing.assert_allclose(flat[:, :, 0], summed, rtol=0, atol=1e-12)
