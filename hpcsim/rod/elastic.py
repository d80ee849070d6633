"""Energy, forces and couples of a geometrically exact rod on staggered nodes.

Nodes carry a place r and a frame R (columns d1 along the rod, d2, d3), segments of length h the
frame half-way between two nodes, M = R₊ Rᵀ, R_h = √M R, and the strains

    ε = R_hᵀ (r₊ − r)/h − e1            stretch and shear
    κ = vax asym R_hᵀ (R₊ − R)/h        twist and bending, |κ| = (2/h) sin(h κ_true/2)
    E = Σ h ½ (s − s0)·C (s − s0),      s = (ε, κ), C symmetric 6 × 6,  (l, m) = C (s − s0)

Totals at a node are exact derivatives, F = −∂E/∂r and N = −∂E/∂w for a turn δR = [w] R:

    F_k = F₊ − F₋,   N_k = N₊ − N₋ + h/2 (X'×F)₊ + h/2 (X'×F)₋
    F± = R_h l,  N± = R_h (m − g κ (κ·m) + g ((ε + e1) × l) × κ),  g = h²/(4 (1 + cos(h κ_true/2)))

The terms with g are of order h²; without them F and N would not be the derivatives of any energy.
F and N telescope, so a free rod exerts no net force and no net torque, to rounding.
"""

from __future__ import annotations

import math

import numpy as np

from hpcsim.compiled import kernel
from hpcsim.rod import rotations

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False


@kernel
def staggered(r, frames, h, closing, rest, stiffness, strains, stresses, force, couple):
    """Strains and stresses (segment, 6), node totals of force [N] and couple [N m]; energy [J].

    r (node, 3), frames (node, 3, 3), h (segment), rest (segment, 6), stiffness (segment, 6, 6).
    There is a segment behind the last node if the rod is closed: as many segments as nodes; it ends
    at the first node plus `closing`, which is a period of the box or nothing.
    """
    nodes, segments = len(r), len(h)
    force[:], couple[:] = 0.0, 0.0
    energy = 0.0
    half = np.empty((3, 3))
    for k in range(segments):
        after = k + 1 if k + 1 < nodes else 0
        a, b, length = frames[k], frames[after], h[k]
        # M = b aᵀ: its trace, and asym M = [q]
        trace = 0.0
        q0, q1, q2 = 0.0, 0.0, 0.0
        for j in range(3):
            trace += b[0, j] * a[0, j] + b[1, j] * a[1, j] + b[2, j] * a[2, j]
            q0 += 0.5 * (b[2, j] * a[1, j] - b[1, j] * a[2, j])
            q1 += 0.5 * (b[0, j] * a[2, j] - b[2, j] * a[0, j])
            q2 += 0.5 * (b[1, j] * a[0, j] - b[0, j] * a[1, j])
        root = math.sqrt(max(1.0 + trace, 1e-300))
        # √M = 1 + [q]/root + 2 [q]²/(root² (2 + root))
        c1, c2 = 1.0 / root, 2.0 / (root * root * (2.0 + root))
        for j in range(3):
            u, v, w = a[0, j], a[1, j], a[2, j]
            x, y, z = q1 * w - q2 * v, q2 * u - q0 * w, q0 * v - q1 * u
            half[0, j] = u + c1 * x + c2 * (q1 * z - q2 * y)
            half[1, j] = v + c1 * y + c2 * (q2 * x - q0 * z)
            half[2, j] = w + c1 * z + c2 * (q0 * y - q1 * x)
        e0, e1, e2 = r[after, 0] - r[k, 0], r[after, 1] - r[k, 1], r[after, 2] - r[k, 2]
        if after < k:
            e0, e1, e2 = e0 + closing[0], e1 + closing[1], e2 + closing[2]
        twice = 2.0 * c1 / length
        for j in range(3):
            strains[k, j] = (half[0, j] * e0 + half[1, j] * e1 + half[2, j] * e2) / length
            strains[k, 3 + j] = twice * (half[0, j] * q0 + half[1, j] * q1 + half[2, j] * q2)
        t0, t1, t2 = strains[k, 0], strains[k, 1], strains[k, 2]
        strains[k, 0] -= 1.0
        for i in range(6):
            total = 0.0
            for j in range(6):
                total += stiffness[k, i, j] * (strains[k, j] - rest[k, j])
            stresses[k, i] = total
            energy += 0.5 * length * total * (strains[k, i] - rest[k, i])
        l0, l1, l2, m0, m1, m2 = stresses[k]
        k0, k1, k2 = strains[k, 3], strains[k, 4], strains[k, 5]
        # couple of the force about the segment, t × l, in the frame
        p0, p1, p2 = t1 * l2 - t2 * l1, t2 * l0 - t0 * l2, t0 * l1 - t1 * l0
        g = length * length / (4.0 * (1.0 + 0.5 * root))
        along = k0 * m0 + k1 * m1 + k2 * m2
        n0 = m0 + g * (p1 * k2 - p2 * k1 - along * k0)
        n1 = m1 + g * (p2 * k0 - p0 * k2 - along * k1)
        n2 = m2 + g * (p0 * k1 - p1 * k0 - along * k2)
        for i in range(3):
            f = half[i, 0] * l0 + half[i, 1] * l1 + half[i, 2] * l2
            n = half[i, 0] * n0 + half[i, 1] * n1 + half[i, 2] * n2
            lever = 0.5 * length * (half[i, 0] * p0 + half[i, 1] * p1 + half[i, 2] * p2)
            force[k, i] += f
            force[after, i] -= f
            couple[k, i] += lever + n
            couple[after, i] += lever - n
    return energy


def turn_nodes(
    r: np.ndarray,
    closing: np.ndarray,
    segments: int,
    turn: np.ndarray,
    start: np.ndarray,
    out: np.ndarray,
) -> None:
    """Frames of nodes turned from `start`; the places do not matter."""
    rotations.turn(turn, start, out)
