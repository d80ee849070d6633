"""Rotations of space by axial vectors: exp, its differential and the inverse of that.

With [x] y = x × y and f = |x|:

    exp(x)     = 1 + sin f/f [x] + (1 − cos f)/f² [x]²
    dexpinv(x) = 1 − [x]/2 − G [x]²,   G = (f cot(f/2) − 2)/(2 f²)
    d/dx (dexpinv(x) y) = [y]/2 − (G'/f) (x × (x × y)) xᵀ − G ((x·y) 1 + x yᵀ − 2 y xᵀ)

so that d/dt exp(Θ) = [w] exp(Θ) where Θ' = dexpinv(Θ) w. A rotation in a plane is one about z.
"""

from __future__ import annotations

import math

import numpy as np

from hpcsim.compiled import inlined, kernel

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False

#: Angles below which series are used: what these leave out is under 1e-17 there, while the closed
#: forms of G and G' lose digits to differences.
TINY, SERIES = 1e-4, 0.25


@inlined
def sine_ratios(f):
    """sin f/f and (1 − cos f)/f²."""
    if f < TINY:
        return 1.0 - f * f / 6.0, 0.5 - f * f / 24.0
    sine = math.sin(0.5 * f)
    return math.sin(f) / f, 2.0 * sine * sine / (f * f)


@inlined
def inverse_coefficients(f):
    """G = (f cot(f/2) − 2)/(2 f²) and G'/f."""
    q = f * f
    if f < SERIES:
        g = 1.0 / 47900160.0 + q * (691.0 / 1307674368000.0)
        g = -1.0 / 12.0 - q * (1.0 / 720.0 + q * (1.0 / 30240.0 + q * (1.0 / 1209600.0 + q * g)))
        slope = 1.0 / 5987520.0 + q * (691.0 / 130767436800.0)
        slope = -1.0 / 360.0 - q * (1.0 / 7560.0 + q * (1.0 / 201600.0 + q * slope))
        return g, slope
    cot = 1.0 / math.tan(0.5 * f)
    sine = math.sin(0.5 * f)
    g = (f * cot - 2.0) / (2.0 * q)
    slope = (8.0 - q / (sine * sine) - 2.0 * f * cot) / (4.0 * q * q)
    return g, slope


@inlined
def rotate(x, r, out):
    """out = exp(x) r for a matrix r (3, 3); out is another array."""
    a, b, c = x[0], x[1], x[2]
    s, k = sine_ratios(math.sqrt(a * a + b * b + c * c))
    for j in range(3):
        u, v, w = r[0, j], r[1, j], r[2, j]
        p, q, t = b * w - c * v, c * u - a * w, a * v - b * u
        out[0, j] = u + s * p + k * (b * t - c * q)
        out[1, j] = v + s * q + k * (c * p - a * t)
        out[2, j] = w + s * t + k * (a * q - b * p)


@inlined
def dexpinv(x, y):
    """dexpinv(x) y as three numbers."""
    a, b, c = x[0], x[1], x[2]
    g, _ = inverse_coefficients(math.sqrt(a * a + b * b + c * c))
    p, q, t = b * y[2] - c * y[1], c * y[0] - a * y[2], a * y[1] - b * y[0]
    return (
        y[0] - 0.5 * p - g * (b * t - c * q),
        y[1] - 0.5 * q - g * (c * p - a * t),
        y[2] - 0.5 * t - g * (a * q - b * p),
    )


@inlined
def dexpinv_slope(x, y, out):
    """out = d/dx (dexpinv(x) y), (3, 3)."""
    g, slope = inverse_coefficients(math.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2))
    dot = x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
    square = x[0] ** 2 + x[1] ** 2 + x[2] ** 2
    for i in range(3):
        twice = x[i] * dot - y[i] * square  # x × (x × y)
        for j in range(3):
            out[i, j] = -slope * twice * x[j] - g * (x[i] * y[j] - 2.0 * y[i] * x[j])
        out[i, i] -= g * dot
    for i in range(3):  # [y]/2
        j, k = (i + 1) % 3, (i + 2) % 3
        out[i, j] -= 0.5 * y[k]
        out[i, k] += 0.5 * y[j]


@kernel
def turn(theta, frames, out):
    """out = exp(Θ) R at every node, brought back to an exact rotation: R (3 − Rᵀ R)/2."""
    made = np.empty((3, 3))
    for k in range(len(frames)):
        rotate(theta[k], frames[k], made)
        for i in range(3):
            for j in range(3):
                total = 0.0
                for m in range(3):
                    square = 0.0
                    for n in range(3):
                        square += made[n, m] * made[n, j]
                    total += made[i, m] * square
                out[k, i, j] = 1.5 * made[i, j] - 0.5 * total


@kernel
def rates(theta, spins, out):
    """Θ' = dexpinv(Θ) w at every node."""
    for k in range(len(theta)):
        out[k, 0], out[k, 1], out[k, 2] = dexpinv(theta[k], spins[k])
