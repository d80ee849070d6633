"""Where explicit tableaux are stable, from their stability function R(z) = 1 + z b·(1 − zA)⁻¹ 1."""

from __future__ import annotations

import numpy as np

from hpcsim.time.tableaux import AdditivePair


def real_limit(pair: AdditivePair) -> float:
    """The largest x such that |R(−y)| ≤ 1 for all y in [0, x], of the explicit half."""
    a, b = pair.a_explicit, pair.b_explicit
    moments, power = [], np.ones(len(b))
    for _ in b:
        moments.append(b @ power)
        power = a @ power
    y = np.linspace(0, 20, 20001)
    growth = 1 + sum(m * (-y) ** (k + 1) for k, m in enumerate(moments))
    unstable = np.flatnonzero(np.abs(growth) > 1 + 1e-9)
    return float(y[unstable[0] - 1]) if len(unstable) else float(y[-1])
