"""The loops of the fluid. Spectral arrays come as real ones, (x, component, y, 2 z)."""

from __future__ import annotations

# ruff: noqa: ANN001, ANN201
# mypy: disallow-untyped-defs=False
import numpy as np

from hpcsim.compiled import kernel, reduction


@kernel
def skew_convection(u, coefficients, axes, factor, g):
    """g = −factor ½ Σ_a [u_a D_a u + D_a(u_a u)], u with a halo as wide as the stencil.

    D(uf) + u Df = Σ_m d_m [(u + u₊ₘ) f₊ₘ − (u + u₋ₘ) f₋ₘ] / h; `coefficients` are d_m / 2h, (a, m).
    """
    dim, planes, rows, columns = g.shape
    reach = coefficients.shape[1]
    for x in range(planes):
        for y in range(rows):
            for c in range(dim):
                out = g[c, x, y]
                for z in range(columns):
                    out[z] = 0.0
                for a in range(dim):
                    here = u[a, x + reach, y]
                    for m in range(1, reach + 1):
                        w = factor * coefficients[a, m - 1]
                        if axes[a] == 2:
                            same = u[c, x + reach, y]
                            for z in range(m):
                                p, q = (z + m) % columns, (z - m) % columns
                                out[z] -= w * (
                                    (here[z] + here[p]) * same[p] - (here[z] + here[q]) * same[q]
                                )
                            for z in range(m, columns - m):
                                out[z] -= w * (
                                    (here[z] + here[z + m]) * same[z + m]
                                    - (here[z] + here[z - m]) * same[z - m]
                                )
                            for z in range(max(m, columns - m), columns):
                                p, q = (z + m) % columns, (z - m) % columns
                                out[z] -= w * (
                                    (here[z] + here[p]) * same[p] - (here[z] + here[q]) * same[q]
                                )
                        else:
                            if axes[a] == 0:
                                xp, xm, yp, ym = x + reach + m, x + reach - m, y, y
                            else:
                                xp, xm = x + reach, x + reach
                                yp, ym = (y + m) % rows, (y - m) % rows
                            up, um = u[a, xp, yp], u[a, xm, ym]
                            fp, fm = u[c, xp, yp], u[c, xm, ym]
                            for z in range(columns):
                                out[z] -= w * (
                                    (here[z] + up[z]) * fp[z] - (here[z] + um[z]) * fm[z]
                                )


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
    for x in range(g.shape[0]):
        for y in range(g.shape[2]):
            a, b = k0[x], k1[y]
            if g.shape[1] == 3:
                xx, yy, xy, xz, yz = t[x, 0, y], t[x, 1, y], t[x, 2, y], t[x, 3, y], t[x, 4, y]
                gx, gy, gz = g[x, 0, y], g[x, 1, y], g[x, 2, y]
                for z in range(0, g.shape[3], 2):
                    c = k2[z]
                    gx[z] = factor * (a * xx[z + 1] + b * xy[z + 1] + c * xz[z + 1])
                    gx[z + 1] = -factor * (a * xx[z] + b * xy[z] + c * xz[z])
                    gy[z] = factor * (a * xy[z + 1] + b * yy[z + 1] + c * yz[z + 1])
                    gy[z + 1] = -factor * (a * xy[z] + b * yy[z] + c * yz[z])
                    gz[z] = factor * (a * xz[z + 1] + b * yz[z + 1])
                    gz[z + 1] = -factor * (a * xz[z] + b * yz[z])
            else:
                xx, xy = t[x, 0, y], t[x, 1, y]
                gx, gz = g[x, 0, y], g[x, 1, y]
                for z in range(0, g.shape[3], 2):
                    c = k2[z]
                    gx[z] = factor * (a * xx[z + 1] + c * xy[z + 1])
                    gx[z + 1] = -factor * (a * xx[z] + c * xy[z])
                    gz[z] = factor * (a * xy[z + 1])
                    gz[z + 1] = -factor * (a * xy[z])


@kernel
def project(g, s0, s1, s2):
    """ĝ ← ĝ − s (s·ĝ)/(s·s); untouched where s = 0 (the null modes)."""
    for x in range(g.shape[0]):
        for y in range(g.shape[2]):
            a, b = s0[x], s1[y]
            if g.shape[1] == 3:
                gx, gy, gz = g[x, 0, y], g[x, 1, y], g[x, 2, y]
                for z in range(g.shape[3]):
                    c = s2[z]
                    ss = a * a + b * b + c * c
                    q = (a * gx[z] + b * gy[z] + c * gz[z]) / (ss if ss > 0.0 else 1.0)
                    gx[z] -= a * q
                    gy[z] -= b * q
                    gz[z] -= c * q
            else:
                gx, gz = g[x, 0, y], g[x, 1, y]
                for z in range(g.shape[3]):
                    c = s2[z]
                    ss = a * a + c * c
                    q = (a * gx[z] + c * gz[z]) / (ss if ss > 0.0 else 1.0)
                    gx[z] -= a * q
                    gz[z] -= c * q


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
def combine(u, keep, own, rates, explicit, stages, implicit, diagonal, l0, l1, l2, out):
    """[û (keep − own λ) + Σ_k explicit_k ĝ_k − λ Σ_k implicit_k û_k] / (1 + diagonal λ).

    Coefficients carry the step (and the viscosity, where λ is); zero ones cost nothing. `out` may
    be `u` itself.
    """
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                base = l0[x] + l1[y]
                row = out[x, c, y]
                old = u[x, c, y]
                for z in range(len(row)):
                    row[z] = old[z] * (keep - own * (base + l2[z]))
                for k in range(len(explicit)):
                    w = explicit[k]
                    if w != 0.0:
                        rate = rates[k, x, c, y]
                        for z in range(len(row)):
                            row[z] += w * rate[z]
                for k in range(len(implicit)):
                    w = implicit[k]
                    if w != 0.0:
                        stage = stages[k, x, c, y]
                        for z in range(len(row)):
                            row[z] -= w * (base + l2[z]) * stage[z]
                if diagonal != 0.0:
                    for z in range(len(row)):
                        row[z] /= 1.0 + diagonal * (base + l2[z])


@kernel
def subtract_viscous(u, viscosity, l0, l1, l2, g):
    """ĝ −= ν λ û."""
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                base = l0[x] + l1[y]
                row, rate = u[x, c, y], g[x, c, y]
                for z in range(len(row)):
                    rate[z] -= viscosity * (base + l2[z]) * row[z]


@reduction
def weighted_sums(u, v, weight, l0, l1, l2):
    """(Σ û·v̂*, Σ λ û·v̂*) over all modes, those left out of the half spectrum counted."""
    plain, laplacian = 0.0, 0.0
    for x in range(u.shape[0]):
        for c in range(u.shape[1]):
            for y in range(u.shape[2]):
                base = l0[x] + l1[y]
                a, b = u[x, c, y], v[x, c, y]
                row, curved = 0.0, 0.0
                for z in range(len(a)):
                    e = weight[z] * a[z] * b[z]
                    row += e
                    curved += e * l2[z]
                plain += row
                laplacian += base * row + curved
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
                a, b = f[c, x, y], u[c, x, y]
                row = 0.0
                for z in range(len(a)):
                    row += a[z] * b[z]
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
