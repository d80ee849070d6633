"""The loops of the fluid. Spectral arrays come as real ones, (x, component, y, 2 z)."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False
from functools import cache

import numpy as np
from numpy import uintp

from hpcsim.compiled import inlined, kernel, reduction


@inlined
def advected(u, a, c, x, y, z, xp, yp, zp, xq, yq, zq):
    """(v + v₊) f₊ − (v + v₋) f₋ of v = u_a, f = u_c at a point and two others."""
    v = u[a, x, y, z]
    return (v + u[a, xp, yp, zp]) * u[c, xp, yp, zp] - (v + u[a, xq, yq, zq]) * u[c, xq, yq, zq]


@cache
def skew_convection(dim, reach):
    """The loop of convection in so many dimensions for a gradient that reaches so many points."""
    last = dim - 1

    @kernel
    def convect(u, coefficients, factor, g) -> None:
        """g = −factor ½ Σ_a [u_a D_a u + D_a(u_a u)], u with a halo as wide as the stencil.

        D(vf) + v Df = Σ_m d_m [(v + v₊ₘ) f₊ₘ − (v + v₋ₘ) f₋ₘ] / h, `coefficients` (a, m): d_m / 2h.
        """
        _, planes, rows, columns = g.shape
        for plane in range(planes):
            x = plane + reach
            for y in range(rows):
                for c in range(dim):
                    for z in range(columns):
                        g[c, plane, y, z] = 0.0
                    for m in range(1, reach + 1):
                        wx, wy = factor * coefficients[0, m - 1], factor * coefficients[1, m - 1]
                        wz = factor * coefficients[last, m - 1]
                        xp, xq, yp, yq = x + m, x - m, (y + m) % rows, (y - m) % rows
                        for place in range(columns - 2 * m):
                            # known to be positive: the loop becomes one of vectors
                            q = uintp(place)
                            k, p = q + uintp(m), q + uintp(2 * m)
                            if dim == 3:
                                g[c, plane, y, k] -= (
                                    wx * advected(u, 0, c, x, y, k, xp, y, k, xq, y, k)
                                    + wy * advected(u, 1, c, x, y, k, x, yp, k, x, yq, k)
                                    + wz * advected(u, 2, c, x, y, k, x, y, p, x, y, q)
                                )
                            else:
                                g[c, plane, y, k] -= wx * advected(
                                    u, 0, c, x, y, k, xp, y, k, xq, y, k
                                ) + wz * advected(u, 1, c, x, y, k, x, y, p, x, y, q)
                        for place in range(min(2 * m, columns)):
                            z = (place - m) % columns
                            zp, zq = (z + m) % columns, (z - m) % columns
                            g[c, plane, y, z] -= wx * advected(
                                u, 0, c, x, y, z, xp, y, z, xq, y, z
                            ) + wz * advected(u, last, c, x, y, z, x, y, zp, x, y, zq)
                            if dim == 3:
                                g[c, plane, y, z] -= wy * advected(
                                    u, 1, c, x, y, z, x, yp, z, x, yq, z
                                )

    return convect


@kernel
def products(u):
    """u_i u_j − δ_ij u_d², d the last component, in place of u: what convection needs of it.

    3D: (xx, yy, xy, xz, yz) of five components of which three hold u; 2D: (xx, xy) of two.
    The gradient of u_d², which is left out, belongs to the pressure.
    """
    flat = u.reshape(u.shape[0], -1)
    if u.shape[0] == 5:
        for i in range(flat.shape[1]):
            a, b, c = flat[0, i], flat[1, i], flat[2, i]
            flat[0, i] = a * a - c * c
            flat[1, i] = b * b - c * c
            flat[2, i] = a * b
            flat[3, i] = a * c
            flat[4, i] = b * c
    else:
        for i in range(flat.shape[1]):
            a, c = flat[0, i], flat[1, i]
            flat[0, i] = a * a - c * c
            flat[1, i] = a * c


@kernel
def flux_divergence(t, k0, k1, k2, factor, g):
    """ĝ_a = −factor i k_b T̂_ab of the products."""
    modes = g.shape[3] // 2
    for x in range(g.shape[0]):
        for y in range(g.shape[2]):
            a, b = factor * k0[x], factor * k1[y]
            for mode in range(modes):
                re, im = 2 * uintp(mode), 2 * uintp(mode) + uintp(1)
                c = factor * k2[re]
                if g.shape[1] == 3:
                    g[x, 0, y, re] = a * t[x, 0, y, im] + b * t[x, 2, y, im] + c * t[x, 3, y, im]
                    g[x, 0, y, im] = -a * t[x, 0, y, re] - b * t[x, 2, y, re] - c * t[x, 3, y, re]
                    g[x, 1, y, re] = a * t[x, 2, y, im] + b * t[x, 1, y, im] + c * t[x, 4, y, im]
                    g[x, 1, y, im] = -a * t[x, 2, y, re] - b * t[x, 1, y, re] - c * t[x, 4, y, re]
                    g[x, 2, y, re] = a * t[x, 3, y, im] + b * t[x, 4, y, im]
                    g[x, 2, y, im] = -a * t[x, 3, y, re] - b * t[x, 4, y, re]
                else:
                    g[x, 0, y, re] = a * t[x, 0, y, im] + c * t[x, 1, y, im]
                    g[x, 0, y, im] = -a * t[x, 0, y, re] - c * t[x, 1, y, re]
                    g[x, 1, y, re] = a * t[x, 1, y, im]
                    g[x, 1, y, im] = -a * t[x, 1, y, re]


@inlined
def project_plane(g, x, s0, s1, s2):
    """ĝ ← ĝ − s (s·ĝ)/(s·s) on one plane of modes; untouched where s = 0 (the null modes)."""
    for y in range(g.shape[2]):
        a, b = s0[x], s1[y]
        if g.shape[1] == 3:
            gx, gy, gz = g[x, 0, y], g[x, 1, y], g[x, 2, y]
            for z in range(len(gx)):
                c = s2[z]
                square = a * a + b * b + c * c
                q = (a * gx[z] + b * gy[z] + c * gz[z]) / (square if square > 0.0 else 1.0)
                gx[z] -= a * q
                gy[z] -= b * q
                gz[z] -= c * q
        else:
            gx, gz = g[x, 0, y], g[x, 1, y]
            for z in range(len(gx)):
                c = s2[z]
                square = a * a + c * c
                q = (a * gx[z] + c * gz[z]) / (square if square > 0.0 else 1.0)
                gx[z] -= a * q
                gz[z] -= c * q


@kernel
def project(g, s0, s1, s2):
    """ĝ ← ĝ − s (s·ĝ)/(s·s)."""
    for x in range(g.shape[0]):
        project_plane(g, x, s0, s1, s2)


@kernel
def pressure(g, s0, s1, s2, p):
    """p̂ = −i (s·ĝ)/(s·s), zero on the null modes; p of one component."""
    for x in range(g.shape[0]):
        for y in range(g.shape[2]):
            for z in range(0, g.shape[3], 2):
                a, b, c = s0[x], s1[y], s2[z]
                ss = a * a + b * b + c * c
                last = g.shape[1] - 1
                re = a * g[x, 0, y, z] + c * g[x, last, y, z]
                im = a * g[x, 0, y, z + 1] + c * g[x, last, y, z + 1]
                if last == 2:
                    re += b * g[x, 1, y, z]
                    im += b * g[x, 1, y, z + 1]
                q = 1.0 / ss if ss > 0.0 else 0.0
                p[x, 0, y, z] = im * q
                p[x, 0, y, z + 1] = -re * q


@kernel
def combine(u, keep, own, rates, explicit, stages, implicit, diagonal, l0, l1, l2, s0, s1, s2, out):
    """P [û (keep − own λ) + Σ_k explicit_k ĝ_k − λ Σ_k implicit_k û_k] / (1 + diagonal λ).

    Coefficients carry the step (and the viscosity, where λ is); zero ones cost nothing. `out` may
    be `u` itself.
    """
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                base = l0[x] + l1[y]
                old, new = u[x, c, y], out[x, c, y]
                for z in range(len(new)):
                    new[z] = old[z] * (keep - own * (base + l2[z]))
                for k in range(len(explicit)):
                    w = explicit[k]
                    if w != 0.0:
                        rate = rates[k, x, c, y]
                        for z in range(len(new)):
                            new[z] += w * rate[z]
                for k in range(len(implicit)):
                    w = implicit[k]
                    if w != 0.0:
                        stage = stages[k, x, c, y]
                        for z in range(len(new)):
                            new[z] -= w * (base + l2[z]) * stage[z]
                if diagonal != 0.0:
                    for z in range(len(new)):
                        new[z] /= 1.0 + diagonal * (base + l2[z])
        project_plane(out, x, s0, s1, s2)


@kernel
def subtract_viscous(u, viscosity, l0, l1, l2, g):
    """ĝ −= ν λ û."""
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                base = l0[x] + l1[y]
                for z in range(u.shape[3]):
                    g[x, c, y, z] -= viscosity * (base + l2[z]) * u[x, c, y, z]


@reduction
def weighted_sums(u, v, weight, l0, l1, l2):
    """(Σ û·v̂*, Σ λ û·v̂*) over all modes, those left out of the half spectrum counted."""
    plain, laplacian = 0.0, 0.0
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                row, curved = 0.0, 0.0
                for z in range(u.shape[3]):
                    e = weight[z] * u[x, c, y, z] * v[x, c, y, z]
                    row += e
                    curved += e * l2[z]
                plain += row
                laplacian += (l0[x] + l1[y]) * row + curved
    return plain, laplacian


@reduction
def largest_courant(u, inverse_spacing):
    """max over points of Σ_a |u_a| / h_a [1/s]; u (component, x, y, z). NaN counts as infinite."""
    most = 0.0
    for x in range(u.shape[1]):
        for y in range(u.shape[2]):
            for z in range(u.shape[3]):
                speed = 0.0
                for a in range(u.shape[0]):
                    speed += abs(u[a, x, y, z]) * inverse_spacing[a]
                if not speed < np.inf:
                    return np.inf
                most = max(most, speed)
    return most


@kernel
def divergence(u, s0, s1, s2, d):
    """d̂ = i s·û."""
    last = u.shape[1] - 1
    for x in range(u.shape[0]):
        for y in range(u.shape[2]):
            for z in range(0, u.shape[3], 2):
                a, b, c = s0[x], s1[y], s2[z]
                re = a * u[x, 0, y, z] + c * u[x, last, y, z]
                im = a * u[x, 0, y, z + 1] + c * u[x, last, y, z + 1]
                if last == 2:
                    re += b * u[x, 1, y, z]
                    im += b * u[x, 1, y, z + 1]
                d[x, 0, y, z] = -im
                d[x, 0, y, z + 1] = re


@kernel
def curl(u, s0, s1, s2, factor, w):
    """ŵ = factor i s × û: 3D three components; 2D w = ∂_x u_y − ∂_y u_x, one."""
    for x in range(u.shape[0]):
        for y in range(u.shape[2]):
            for z in range(0, u.shape[3], 2):
                a, b, c = factor * s0[x], factor * s1[y], factor * s2[z]
                if u.shape[1] == 3:
                    for part in range(2):
                        sign = -1.0 if part == 0 else 1.0
                        q = z + 1 - part
                        ux, uy, uz = u[x, 0, y, q], u[x, 1, y, q], u[x, 2, y, q]
                        w[x, 0, y, z + part] = sign * (b * uz - c * uy)
                        w[x, 1, y, z + part] = sign * (c * ux - a * uz)
                        w[x, 2, y, z + part] = sign * (a * uy - b * ux)
                else:
                    w[x, 0, y, z] = -(a * u[x, 1, y, z + 1] - c * u[x, 0, y, z + 1])
                    w[x, 0, y, z + 1] = a * u[x, 1, y, z] - c * u[x, 0, y, z]


@kernel
def shell_sums(u, weight, shells, energy):
    """Add ½ |û|² of every mode to its shell; `shells` (x, y, z) of shell numbers."""
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                for z in range(u.shape[3]):
                    energy[shells[x, y, z // 2]] += 0.5 * weight[z] * u[x, c, y, z] ** 2


@kernel
def add(g, f, factor):
    """g += factor f, both contiguous."""
    a, b = g.reshape(-1), f.reshape(-1)
    for i in range(len(a)):
        a[i] += factor * b[i]


@reduction
def dot(f, u):
    """Σ f·u over points; (component, x, y, z)."""
    total = 0.0
    for c in range(f.shape[0]):
        for x in range(f.shape[1]):
            for y in range(f.shape[2]):
                row = 0.0
                for z in range(f.shape[3]):
                    row += f[c, x, y, z] * u[c, x, y, z]
                total += row
    return total


@kernel
def turned_gradient(m, s0, s1, s2, factor, f):
    """f̂ = factor i (s_y, −s_x) m̂: the curl of a couple about the missing axis, 2D."""
    for x in range(m.shape[0]):
        for y in range(m.shape[2]):
            for z in range(0, m.shape[3], 2):
                a, c = factor * s0[x], factor * s2[z]
                f[x, 0, y, z] = -c * m[x, 0, y, z + 1]
                f[x, 0, y, z + 1] = c * m[x, 0, y, z]
                f[x, 1, y, z] = a * m[x, 0, y, z + 1]
                f[x, 1, y, z + 1] = -a * m[x, 0, y, z]
