"""The elastic rod: derivatives of its energy, balances, frame indifference, known shapes."""

import numpy as np
import pytest

from hpcsim.rod import rotations
from hpcsim.rod.elastic import staggered


def turned(theta, frames):
    out = np.empty_like(frames)
    rotations.turn(theta, frames, out)
    return out


def forces(r, frames, h, rest, stiffness, closing=(0, 0, 0)):
    strains, stresses = np.empty_like(rest), np.empty_like(rest)
    force, couple = np.empty_like(r), np.empty_like(r)
    energy = staggered(
        r, frames, h, np.array(closing, float), rest, stiffness, strains, stresses, force, couple
    )
    return energy, force, couple, strains


def random_rod(seed, nodes=9, closed=False):
    """A crumpled rod with a full stiffness that differs from segment to segment."""
    rng = np.random.default_rng(seed)
    segments = nodes if closed else nodes - 1
    r = rng.normal(size=(nodes, 3))
    frames = turned(
        rng.uniform(-0.7, 0.7, (nodes, 3)), np.broadcast_to(np.eye(3), (nodes, 3, 3)).copy()
    )
    roots = rng.normal(size=(segments, 6, 6))
    stiffness = roots @ roots.swapaxes(1, 2)
    return r, frames, rng.uniform(0.5, 1.5, segments), rng.normal(size=(segments, 6)), stiffness


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_force_and_couple_are_derivatives_of_the_energy(seed, closed):
    """F = −∂E/∂r, N = −∂E/∂w by differences of the fourth order, whose error is 1e-11 here."""
    r, frames, h, rest, stiffness = random_rod(seed, closed=closed)
    _, force, couple, _ = forces(r, frames, h, rest, stiffness)
    eps = 2e-3
    weights = np.array([1, -8, 8, -1]) / (12 * eps)
    scale = max(np.abs(force).max(), np.abs(couple).max())
    for k, i in np.ndindex(*r.shape):
        change = np.zeros_like(r)
        change[k, i] = eps
        steps = (-2, -1, 1, 2)
        moved = [forces(r + s * change, frames, h, rest, stiffness)[0] for s in steps]
        spun = [forces(r, turned(s * change, frames), h, rest, stiffness)[0] for s in steps]
        assert force[k, i] == pytest.approx(-weights @ moved, abs=1e-9 * scale)
        assert couple[k, i] == pytest.approx(-weights @ spun, abs=1e-9 * scale)


@pytest.mark.parametrize("closed", [False, True])
def test_free_rod_exerts_no_net_force_and_torque(closed):
    r, frames, h, rest, stiffness = random_rod(3, 40, closed)
    _, force, couple, _ = forces(r, frames, h, rest, stiffness)
    size = np.abs(force).sum() * np.abs(r).max() + np.abs(couple).sum()
    assert np.abs(force.sum(0)).max() < 1e-15 * np.abs(force).sum()
    assert np.abs((np.cross(r, force) + couple).sum(0)).max() < 1e-14 * size


def test_rod_does_not_know_where_it_is():
    """Turned and moved as a whole: the same energy and strains, turned forces and couples."""
    r, frames, h, rest, stiffness = random_rod(4)
    energy, force, couple, strains = forces(r, frames, h, rest, stiffness)
    theta = np.broadcast_to([0.4, -1.3, 0.8], r.shape).copy()
    q = turned(theta[:1], np.eye(3)[None])[0]
    there = forces(r @ q.T + [3.0, -1.0, 2.0], turned(theta, frames), h, rest, stiffness)
    assert there[0] == pytest.approx(energy, rel=1e-13)
    for found, expected in zip(there[1:], (force @ q.T, couple @ q.T, strains), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def straight(nodes, length=2.0):
    r = np.zeros((nodes, 3))
    r[:, 0] = np.linspace(0, length, nodes)
    frames = np.broadcast_to(np.eye(3), (nodes, 3, 3)).copy()
    return r, frames, np.full(nodes - 1, length / (nodes - 1))


def stiffness_of(segments, stretch=(5.0, 3.0, 4.0), bend=(0.2, 0.3, 0.5)):
    return np.broadcast_to(np.diag([*stretch, *bend]), (segments, 6, 6)).copy()


@pytest.mark.parametrize(
    ("strain", "axis"),
    [("stretch", 0), ("shear", 1), ("shear", 2)],
)
def test_stretched_and_sheared_rods(strain, axis):
    """ε along one axis: E = ½ b ε² L, forces only at the ends, ∓ b ε."""
    nodes, eps = 11, 0.03
    r, frames, h = straight(nodes)
    r[:, axis] += eps * np.linspace(0, 2.0, nodes)
    b = (5.0, 3.0, 4.0)[axis]
    rest = np.zeros((nodes - 1, 6))
    energy, force, _, strains = forces(r, frames, h, rest, stiffness_of(nodes - 1))
    assert energy == pytest.approx(0.5 * b * eps**2 * 2.0, rel=1e-12)
    np.testing.assert_allclose(strains[:, axis], eps, rtol=0, atol=1e-14)
    np.testing.assert_allclose(force[1:-1], 0.0, rtol=0, atol=1e-13)
    assert force[0, axis] == pytest.approx(b * eps, rel=1e-12)
    assert force[-1, axis] == pytest.approx(-b * eps, rel=1e-12)


def test_twisted_straight_rod():
    """Twist τ: E = a1 τ² L/2 up to h², no force, couples only at the ends."""
    nodes, tau = 101, 3.0
    r, frames, h = straight(nodes)
    s = np.linspace(0, 2.0, nodes)
    frames = turned(np.outer(tau * s, [1.0, 0, 0]), frames)
    rest = np.zeros((nodes - 1, 6))
    energy, force, couple, strains = forces(r, frames, h, rest, stiffness_of(nodes - 1))
    discrete = 2 / h[0] * np.sin(h[0] * tau / 2)
    np.testing.assert_allclose(strains[:, 3], discrete, rtol=1e-12)
    assert energy == pytest.approx(0.5 * 0.2 * tau**2 * 2.0, rel=1e-3)
    np.testing.assert_allclose(force, 0.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(couple[1:-1], 0.0, rtol=0, atol=1e-12)
    assert couple[0, 0] == pytest.approx(0.2 * tau, rel=1e-3)


def ring(nodes, radius=0.7):
    phi = 2 * np.pi * np.arange(nodes) / nodes
    zero, one = np.zeros(nodes), np.ones(nodes)
    r = radius * np.stack([np.cos(phi), np.sin(phi), zero], axis=1)
    d1 = np.stack([-np.sin(phi), np.cos(phi), zero], axis=1)
    d2 = np.stack([-np.cos(phi), -np.sin(phi), zero], axis=1)
    frames = np.stack([d1, d2, np.stack([zero, zero, one], axis=1)], axis=2)
    return r, frames, np.full(nodes, 2 * np.pi * radius / nodes)


def test_energy_of_a_ring_converges_with_order_two():
    """E = π a/ρ for a rod that is straight at rest; force and couple densities vanish with h²."""
    errors = []
    for nodes in (32, 64):
        r, frames, h = ring(nodes)
        rest = np.zeros((nodes, 6))
        energy, _, couple, _ = forces(r, frames, h, rest, stiffness_of(nodes))
        exact = np.pi * 0.5 / 0.7
        errors.append(abs(energy - exact) / exact)
        np.testing.assert_allclose(couple, 0.0, rtol=0, atol=1e-12)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)


def test_helix_at_its_rest_strain_is_at_ease():
    """Uniform κ = (torsion, 0, curvature): frames by exp, places by chords; nothing acts."""
    nodes, h = 41, 0.05
    curvature = np.array([0.6, 0.0, 1.1])
    frames = np.empty((nodes, 3, 3))
    frames[0] = np.eye(3)
    step = turned((h * curvature)[None], np.eye(3)[None])[0]
    halfway = turned((0.5 * h * curvature)[None], np.eye(3)[None])[0]
    r = np.zeros((nodes, 3))
    for k in range(nodes - 1):
        frames[k + 1] = frames[k] @ step
        r[k + 1] = r[k] + h * (frames[k] @ halfway)[:, 0]
    f = np.linalg.norm(curvature)
    rest = np.zeros((nodes - 1, 6))
    rest[:, 3:] = 2 / h * np.sin(h * f / 2) * curvature / f
    energy, force, couple, strains = forces(
        r, frames, np.full(nodes - 1, h), rest, stiffness_of(nodes - 1)
    )
    np.testing.assert_allclose(strains, rest, rtol=0, atol=1e-13)
    assert energy < 1e-25
    assert max(np.abs(force).max(), np.abs(couple).max()) < 1e-12


def test_rod_that_closes_across_a_period():
    """An endless straight filament: the last segment ends one box further; nothing acts."""
    nodes = 8
    r, frames, _ = straight(nodes, 2.0 * (nodes - 1) / nodes)
    h = np.full(nodes, 2.0 / nodes)
    rest = np.zeros((nodes, 6))
    energy, force, _, _ = forces(r, frames, h, rest, stiffness_of(nodes), closing=(2.0, 0, 0))
    assert energy < 1e-28
    np.testing.assert_allclose(force, 0.0, rtol=0, atol=1e-14)
