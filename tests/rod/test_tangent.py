"""Rods that bend by forces: derivatives of their energy, balances, known shapes."""

import numpy as np
import pytest

from hpcsim.rod.rods import MECHANICS
from hpcsim.rod.tangent import bent_by_forces, carry
from tests.rod.test_elastic import ring, straight, turned

NOWHERE = np.zeros(3)


def carried(r, frames, segments, turn=None, closing=NOWHERE):
    out = np.empty_like(frames)
    turn = np.zeros_like(r) if turn is None else turn
    carry(r, closing, segments, turn, frames, out)
    return out


def forces(r, frames, h, rest, stiffness, closing=NOWHERE):
    strains, stresses = np.empty_like(rest), np.empty_like(rest)
    force, couple = np.empty_like(r), np.empty_like(r)
    energy = bent_by_forces(
        r, frames, h, closing, rest, stiffness, strains, stresses, force, couple
    )
    return energy, force, couple, strains


def random_rod(seed, nodes=8, closed=False):
    """A strongly bent and twisted rod; stiffness couples twist and both ways of bending."""
    rng = np.random.default_rng(seed)
    segments = nodes if closed else nodes - 1
    if closed:
        r = ring(nodes, 1.5)[0]
    else:
        r = np.stack([np.arange(nodes) * 1.0, np.zeros(nodes), np.zeros(nodes)], axis=1)
    r = r + rng.uniform(-0.4, 0.4, r.shape)
    frames = np.broadcast_to(np.eye(3), (segments, 3, 3)).copy()
    edges = np.roll(r, -1, axis=0)[:segments] - r[:segments]
    frames = carried(r, np.array([rotation_to(e) for e in edges]), segments)
    frames = turned(rng.uniform(-1, 1, (segments, 1)) * frames[:, :, 0], frames)
    roots = rng.normal(size=(segments, 6, 6))
    stiffness = roots @ roots.swapaxes(1, 2)
    return r, frames, rng.uniform(0.5, 1.5, segments), rng.normal(size=(segments, 6)), stiffness


def rotation_to(edge):
    """Some frame with d1 along an edge."""
    d1 = edge / np.linalg.norm(edge)
    d2 = np.cross(d1, [0.3, -0.5, 0.8])
    d2 /= np.linalg.norm(d2)
    return np.stack([d1, d2, np.cross(d1, d2)], axis=1)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_force_and_couple_are_derivatives_of_the_energy(seed, closed):
    """Where frames are carried along: F = −∂E/∂r and, by turns of the nodes, N = −∂E/∂w."""
    r, frames, h, rest, stiffness = random_rod(seed, closed=closed)
    _, force, couple, _ = forces(r, frames, h, rest, stiffness)
    eps, segments = 2e-3, len(h)
    weights = np.array([1, -8, 8, -1]) / (12 * eps)
    scale = np.abs(force).max()
    for k, i in np.ndindex(*r.shape):
        change = np.zeros_like(r)
        change[k, i] = eps
        moved, spun = [], []
        for step in (-2, -1, 1, 2):
            there = r + step * change
            moved.append(forces(there, carried(there, frames, segments), h, rest, stiffness)[0])
            around = carried(r, frames, segments, step * change)
            spun.append(forces(r, around, h, rest, stiffness)[0])
        assert force[k, i] == pytest.approx(-weights @ moved, abs=1e-8 * scale)
        assert couple[k, i] == pytest.approx(-weights @ spun, abs=1e-8 * scale)


@pytest.mark.parametrize("closed", [False, True])
def test_free_rod_exerts_no_net_force(closed):
    r, frames, h, rest, stiffness = random_rod(5, 30, closed)
    _, force, _, _ = forces(r, frames, h, rest, stiffness)
    assert np.abs(force.sum(0)).max() < 1e-14 * np.abs(force).sum()


@pytest.mark.parametrize("closed", [False, True])
def test_free_rod_exerts_no_net_torque(closed):
    """Σ r × F + N = 0: the energy does not change when the whole rod turns."""
    r, frames, h, rest, stiffness = random_rod(6, 30, closed)
    _, force, couple, _ = forces(r, frames, h, rest, stiffness)
    torque = (np.cross(r, force) + couple).sum(0)
    size = np.abs(force).sum() * np.abs(r).max() + np.abs(couple).sum()
    assert np.abs(torque).max() < 1e-13 * size


def test_rod_does_not_know_where_it_is():
    r, frames, h, rest, stiffness = random_rod(7)
    energy, force, couple, strains = forces(r, frames, h, rest, stiffness)
    q = turned(np.array([[0.4, -1.3, 0.8]]), np.eye(3)[None])[0]
    there = forces(r @ q.T + [3.0, -1.0, 2.0], q @ frames, h, rest, stiffness)
    assert there[0] == pytest.approx(energy, rel=1e-12)
    for found, expected in zip(there[1:], (force @ q.T, couple @ q.T, strains), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def diagonal(segments):
    entries = np.diag([5.0, 1.0, 1.0, 0.2, 0.3, 0.5])
    return np.broadcast_to(entries, (segments, 6, 6)).copy()


def test_energy_of_a_ring_converges_with_order_two():
    """E = π a/ρ; only curvature about d3."""
    errors = []
    for nodes in (32, 64):
        r, frames, h = ring(nodes)
        own = carried(r, frames, nodes)
        energy, _, couple, strains = forces(r, own, h, np.zeros((nodes, 6)), diagonal(nodes))
        np.testing.assert_allclose(strains[:, 5], 1 / 0.7, rtol=5 / nodes**2)
        np.testing.assert_allclose(strains[:, 3:5], 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(couple, 0.0, rtol=0, atol=1e-12)
        bent = energy - 0.5 * 5.0 * (strains[:, 0] ** 2 * h).sum()
        errors.append(abs(bent - np.pi * 0.5 / 0.7))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)


def test_twisted_straight_rod():
    """Twist τ: E = a1 τ² times the length between the outer middles, couples only near the ends."""
    nodes, tau = 41, 3.0
    r, _, h = straight(nodes)
    middles = np.arange(nodes - 1) * h[0]
    frames = turned(
        np.outer(tau * middles, [1.0, 0, 0]), np.broadcast_to(np.eye(3), (nodes - 1, 3, 3)).copy()
    )
    rest = np.zeros((nodes - 1, 6))
    energy, force, couple, strains = forces(r, frames, h, rest, diagonal(nodes - 1))
    np.testing.assert_allclose(strains[:-1, 3], tau, rtol=1e-12)
    assert energy == pytest.approx(0.5 * 0.2 * tau**2 * (2.0 - h[0]), rel=1e-12)
    np.testing.assert_allclose(force, 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(couple[2:-2], 0.0, rtol=0, atol=1e-12)
    assert couple[:2, 0].sum() == pytest.approx(0.2 * tau, rel=1e-12)


def test_carried_frames_stay_orthonormal_and_follow_the_tangent():
    rng = np.random.default_rng(8)
    r, frames, h, _, _ = random_rod(8)
    for _ in range(2000):
        r = r + rng.normal(scale=0.02, size=r.shape)
        frames = carried(r, frames, len(h), rng.normal(scale=0.3, size=r.shape))
    edges = np.diff(r, axis=0)
    tangents = edges / np.linalg.norm(edges, axis=1)[:, None]
    np.testing.assert_allclose(frames[:, :, 0], tangents, rtol=0, atol=1e-14)
    square = frames.swapaxes(1, 2) @ frames
    np.testing.assert_allclose(square, np.broadcast_to(np.eye(3), square.shape), rtol=0, atol=1e-13)


def test_a_turn_of_the_whole_rod_turns_its_frames_to_second_order():
    """Nodes moved and turned as a rigid body in one step: the error of the frames is O(angle³)."""
    r, frames, h, _, _ = random_rod(9)
    errors = []
    for angle in (0.2, 0.1):
        w = angle * np.array([0.3, -0.7, 0.5])
        q = turned(w[None], np.eye(3)[None])[0]
        turn = np.broadcast_to(w, r.shape).copy()
        found = carried(r @ q.T, frames, len(h), turn)
        errors.append(np.abs(found - q @ frames).max())
    assert np.log2(errors[0] / errors[1]) > 2.7


def test_both_ways_of_bending_agree_on_a_gently_bent_rod():
    """A planar arc at rest straight: energies agree to second order."""
    errors = []
    for nodes in (33, 65):
        phi = np.linspace(0, 1.0, nodes)
        r = np.stack([np.sin(phi), 1 - np.cos(phi), np.zeros(nodes)], axis=1)
        frames = turned(
            np.outer(phi, [0, 0, 1.0]), np.broadcast_to(np.eye(3), (nodes, 3, 3)).copy()
        )
        h = np.full(nodes - 1, 1.0 / (nodes - 1))
        own = carried(r, frames[:-1].copy(), nodes - 1)
        energies = []
        for name, these in (("couple", frames), ("force", own)):
            out = [np.zeros((nodes - 1, 6)) for _ in range(3)]
            ends = np.zeros((2, nodes, 3))
            energies.append(
                MECHANICS[name].load(
                    r, these, h, NOWHERE, out[0], diagonal(nodes - 1), out[1], out[2], *ends
                )
            )
        # the second has no curvature in the two outer halves of segments
        errors.append(abs(energies[1] / (1 - h[0]) - energies[0]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)
