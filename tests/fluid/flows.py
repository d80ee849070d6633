"""Flows for tests, made as the model makes them."""

import numpy as np

from hpcsim.fluid.grid import Grid
from hpcsim.fluid.navier_stokes import NavierStokes, transform_components
from hpcsim.fluid.operators import OPERATORS
from hpcsim.parallel.ranks import Ranks
from hpcsim.time.tableaux import ADDITIVE, EXPLICIT, as_pair
from hpcsim.transform.fftw import Effort
from hpcsim.transform.slab import SlabTransform


def make_flow(n, operators, nu=0.0, box=None, ranks=None, density=1.0, kept=True):
    ranks = ranks or Ranks.alone()
    grid = Grid(tuple(n), tuple(box or (2 * np.pi,) * len(n)))
    entry = OPERATORS[operators]
    components = transform_components(grid.dim, entry)
    transform = SlabTransform(n, ranks, components, entry.truncated, Effort.ESTIMATE)
    return NavierStokes(grid, entry, transform, density, nu * density, kept)


def pair_of(name):
    return ADDITIVE[name] if name in ADDITIVE else as_pair(EXPLICIT[name])


def random_solenoidal(flow, seed=0):
    """û of a rough random velocity, all modes the operators have."""
    whole = np.random.default_rng(seed).normal(size=(flow.dim, *flow.transform.shape))
    mine = slice(flow.transform.start, flow.transform.start + flow.transform.count)
    u_hat = flow.coefficients(whole[:, mine].copy())
    flow.project(u_hat)
    return u_hat


def taylor_green(flow):
    x, y = flow.grid.coordinates(flow.transform.start, flow.transform.count)
    return np.array([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)])
