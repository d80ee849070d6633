"""A rod that bends by forces alone: its frames follow the tangent, only the twist needs a couple.

Segments of rest length h carry a tangent t = e/|e| and a frame R (columns t, d2, d3). Strains are
the stretch of segments, ε = |e|/h − 1, and twist and bending at the nodes between two segments −
and +, each over a length l:

    κ1 = (angle from − to +, beyond parallel transport)/l
    κ2 = b·(d2₋ + d2₊)/(2 l),  κ3 = b·(d3₋ + d3₊)/(2 l),  b = 2 t₋ × t₊/(1 + t₋·t₊)
    E = Σ h ½ c_s (ε − ε0)² + Σ l ½ (κ − κ0)·C (κ − κ0)

Forces are exact derivatives of E where frames are carried along by parallel transport; the moment
−∂E/∂θ about a tangent is a couple along it, half on each of the segment's nodes. The discrete rods
of Bergou and others (2008, 2010) are of this kind. There is no shear, no couple bends the rod.
"""

from __future__ import annotations

import math

import numpy as np

from hpcsim.compiled import inlined, kernel

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False


@inlined
def twist_between(before, after):
    """Angle about the tangent from one frame, carried to the tangent of the next, to the next."""
    t0, t1, t2 = before[0, 0], before[1, 0], before[2, 0]
    u0, u1, u2 = after[0, 0], after[1, 0], after[2, 0]
    dot = t0 * u0 + t1 * u1 + t2 * u2
    # d2 of `before`, turned about t × u by the angle between the tangents
    x, y, z = t1 * u2 - t2 * u1, t2 * u0 - t0 * u2, t0 * u1 - t1 * u0
    a, b, c = before[0, 1], before[1, 1], before[2, 1]
    along = (x * a + y * b + z * c) / (1.0 + dot)
    p = dot * a + (y * c - z * b) + along * x
    q = dot * b + (z * a - x * c) + along * y
    r = dot * c + (x * b - y * a) + along * z
    cosine = p * after[0, 1] + q * after[1, 1] + r * after[2, 1]
    sine = p * after[0, 2] + q * after[1, 2] + r * after[2, 2]
    return math.atan2(-sine, cosine)


@inlined
def edge(r, closing, k, out):
    """Direction of segment k into `out`; its length."""
    end = k + 1 if k + 1 < len(r) else 0
    square = 0.0
    for i in range(3):
        out[i] = r[end, i] - r[k, i] + (closing[i] if end < k else 0.0)
        square += out[i] * out[i]
    length = math.sqrt(square)
    for i in range(3):
        out[i] /= length
    return length


@kernel
def bent_by_forces(r, frames, h, closing, rest, stiffness, strains, stresses, force, couple):
    """Strains and stresses (segment, 6), node totals of force [N] and couple [N m]; energy [J].

    Row k has the stretch of segment k and the curvature of the node at its end; the last row of an
    open rod has no curvature. `stiffness` (segment, 6, 6): [0, 0] stretches, [3:, 3:] twists and
    bends. Frames are those of segments; the last one of an open rod's nodes is not used.
    """
    nodes, segments = len(r), len(h)
    closed = segments == nodes
    force[:], couple[:], strains[:], stresses[:] = 0.0, 0.0, 0.0, 0.0
    energy = 0.0
    e, u = np.empty(3), np.empty(3)
    pull, push = np.empty(3), np.empty(3)
    length = edge(r, closing, 0, e)
    for k in range(segments):
        end = k + 1 if k + 1 < nodes else 0
        strains[k, 0] = length / h[k] - 1.0
        stretch = strains[k, 0] - rest[k, 0]
        stresses[k, 0] = stiffness[k, 0, 0] * stretch
        energy += 0.5 * h[k] * stresses[k, 0] * stretch
        for i in range(3):
            f = stresses[k, 0] * e[i]
            force[k, i] += f
            force[end, i] -= f
        if end == segments and not closed:
            continue
        after = end + 1 if end + 1 < nodes else 0
        other = edge(r, closing, end, u)
        before, behind = frames[k], frames[end]
        inverse = 1.0 / (1.0 + e[0] * u[0] + e[1] * u[1] + e[2] * u[2])
        back, ahead = 1.0 / length, 1.0 / other
        span = 0.5 * (h[k] + h[end])
        density = 1.0 / span
        b0 = 2.0 * inverse * (e[1] * u[2] - e[2] * u[1])
        b1 = 2.0 * inverse * (e[2] * u[0] - e[0] * u[2])
        b2 = 2.0 * inverse * (e[0] * u[1] - e[1] * u[0])
        strains[k, 3] = twist_between(before, behind) * density
        for j in range(1, 3):
            strains[k, 3 + j] = (0.5 * density) * (
                b0 * (before[0, j] + behind[0, j])
                + b1 * (before[1, j] + behind[1, j])
                + b2 * (before[2, j] + behind[2, j])
            )
        for i in range(3, 6):
            total = 0.0
            for j in range(3, 6):
                total += stiffness[k, i, j] * (strains[k, j] - rest[k, j])
            stresses[k, i] = total
            energy += 0.5 * span * total * (strains[k, i] - rest[k, i])
        m1 = stresses[k, 3]
        # derivatives of l κ by the two edges, frames carried along
        pull[:], push[:] = 0.0, 0.0
        for j in range(1, 3):
            m, bent = stresses[k, 3 + j], strains[k, 3 + j] * span * inverse
            d0 = (before[0, j] + behind[0, j]) * inverse
            d1 = (before[1, j] + behind[1, j]) * inverse
            d2 = (before[2, j] + behind[2, j]) * inverse
            pull[0] += m * back * (-bent * (e[0] + u[0]) + (u[1] * d2 - u[2] * d1))
            pull[1] += m * back * (-bent * (e[1] + u[1]) + (u[2] * d0 - u[0] * d2))
            pull[2] += m * back * (-bent * (e[2] + u[2]) + (u[0] * d1 - u[1] * d0))
            push[0] += m * ahead * (-bent * (e[0] + u[0]) - (e[1] * d2 - e[2] * d1))
            push[1] += m * ahead * (-bent * (e[1] + u[1]) - (e[2] * d0 - e[0] * d2))
            push[2] += m * ahead * (-bent * (e[2] + u[2]) - (e[0] * d1 - e[1] * d0))
        pull[0] += 0.5 * m1 * back * b0
        pull[1] += 0.5 * m1 * back * b1
        pull[2] += 0.5 * m1 * back * b2
        push[0] += 0.5 * m1 * ahead * b0
        push[1] += 0.5 * m1 * ahead * b1
        push[2] += 0.5 * m1 * ahead * b2
        # E depends on the turn of a segment about its tangent by twist, and by d2, d3 in κ2, κ3
        turn_before, turn_behind = -m1, m1
        for j in range(1, 3):
            m, side = stresses[k, 3 + j], 3 - j
            sign = 1.0 if j == 1 else -1.0  # d2 turns to d3, d3 to −d2
            turn_before += (
                0.5
                * m
                * sign
                * (b0 * before[0, side] + b1 * before[1, side] + b2 * before[2, side])
            )
            turn_behind += (
                0.5
                * m
                * sign
                * (b0 * behind[0, side] + b1 * behind[1, side] + b2 * behind[2, side])
            )
        for i in range(3):
            force[k, i] += pull[i]
            force[end, i] += push[i] - pull[i]
            force[after, i] -= push[i]
            couple[k, i] -= 0.5 * turn_before * e[i]
            couple[end, i] -= 0.5 * turn_before * e[i] + 0.5 * turn_behind * u[i]
            couple[after, i] -= 0.5 * turn_behind * u[i]
            e[i] = u[i]
        length = other
    return energy


@kernel
def carry(r, closing, segments, turn, start, out):
    """Frames of segments taken along from `start`: to the tangents of r, and turned about them.

    turn (node, 3): turns of the fluid at the nodes [rad]; a segment takes the mean of its ends.
    """
    nodes = len(r)
    t, u, axis, moved = np.empty(3), np.empty(3), np.empty(3), np.empty((3, 2))
    for k in range(segments):
        end = k + 1 if k + 1 < nodes else 0
        edge(r, closing, k, u)
        dot, angle = 0.0, 0.0
        for i in range(3):
            t[i] = start[k, i, 0]
            dot += t[i] * u[i]
            # about the mean of both tangents: second order
            angle += 0.5 * (turn[k, i] + turn[end, i]) * (t[i] + u[i])
        angle /= math.sqrt(2.0 * (1.0 + dot))
        for i in range(3):
            p, q = (i + 1) % 3, (i + 2) % 3
            axis[i] = t[p] * u[q] - t[q] * u[p]
        cosine, sine = math.cos(angle), math.sin(angle)
        for j in range(2):
            along = 0.0
            for i in range(3):
                along += axis[i] * start[k, i, 1 + j]
            along /= 1.0 + dot
            for i in range(3):
                p, q = (i + 1) % 3, (i + 2) % 3
                moved[i, j] = (
                    dot * start[k, i, 1 + j]
                    + axis[p] * start[k, q, 1 + j]
                    - axis[q] * start[k, p, 1 + j]
                    + along * axis[i]
                )
        for i in range(3):
            out[k, i, 0] = u[i]
            out[k, i, 1] = cosine * moved[i, 0] + sine * moved[i, 1]
        # exactly orthonormal again: d2 without its part along t, d3 from both
        part, size = 0.0, 0.0
        for i in range(3):
            part += out[k, i, 1] * u[i]
        for i in range(3):
            out[k, i, 1] -= part * u[i]
            size += out[k, i, 1] ** 2
        size = math.sqrt(size)
        for i in range(3):
            out[k, i, 1] /= size
        for i in range(3):
            p, q = (i + 1) % 3, (i + 2) % 3
            out[k, i, 2] = out[k, p, 0] * out[k, q, 1] - out[k, q, 0] * out[k, p, 1]
