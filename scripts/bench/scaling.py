"""A model of what a step of the flow costs, fitted here and carried over to a cluster.

    step = c (transforms + pointwise) + exchanges
    transforms   f  (N/P) log₂ N  of each component that goes to Fourier space or comes back
    pointwise    w  (N/P)         of each stage
    exchanges    a (P − 1) + bytes / B  of each exchange; bytes: what leaves a rank

N points, P ranks; c = P / cores where ranks share cores, else 1. `hpcsim/docs/scaling.md` says what
follows. `python scripts/bench/scaling.py N` is what is started, alone or under mpirun; JSON.
"""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass

import numpy as np
from _flow import TRANSFORMS, ready_flow

from hpcsim.bench import Figure, best, launched
from hpcsim.parallel.ranks import Ranks

SIZES, RANKS = (64, 96, 128), (1, 2, 4)
#: operators → (time scheme, stages, components and exchanges per stage, part of modes kept)
STEPS = {
    "spectral": ("rk4", 4, TRANSFORMS["spectral"], 2, 4 / 9),
    "centred": ("ars222", 2, TRANSFORMS["centred"], 2, 1.0),
}


@dataclass(frozen=True)
class Machine:
    """Coefficients of the model: f, w [s], a [s], B [bytes/s of a rank]; cores."""

    transform: dict[str, float]
    pointwise: dict[str, float]
    latency: float
    bandwidth: float
    cores: float

    def parts(self, operators: str, n: int, ranks: int) -> dict[str, float]:
        """Seconds of a step, by what they go into."""
        _, stages, components, exchanges, kept = STEPS[operators]
        points, sharing = n**3 / ranks, max(1.0, ranks / self.cores)
        leaving = leaving_bytes(n, ranks, kept) * components
        return {
            "transforms": sharing
            * stages
            * components
            * self.transform[operators]
            * points
            * math.log2(n**3),
            "pointwise": sharing * stages * self.pointwise[operators] * points,
            "messages": stages * exchanges * self.latency * (ranks - 1),
            "bytes": stages * leaving / self.bandwidth,
        }

    def step(self, operators: str, n: int, ranks: int) -> float:
        """Seconds of a step."""
        return sum(self.parts(operators, n, ranks).values())


def leaving_bytes(n: int, ranks: int, kept: float) -> float:
    """Bytes of one component that leave a rank in one exchange."""
    return 16 * kept * n**2 * (n / 2 + 1) * (ranks - 1) / ranks**2


# ---- what is measured ----


def pieces(n: int, ranks: Ranks) -> dict[str, dict[str, float]]:
    """Seconds of a step, of its transforms without exchange, and of its exchanges."""
    found = {}
    for operators, (scheme, stages, _, _, _) in STEPS.items():
        flow = ready_flow(n, ranks, operators, scheme)
        transform = flow.transform
        back, forth = flow.grid.dim, transform.components[-1]
        u, u_hat, back_hat = (
            transform.physical(forth),
            transform.spectral(forth),
            transform.spectral(back),
        )

        def both(transform=transform, u=u, u_hat=u_hat, back_hat=back_hat):
            transform.backward(back_hat, u[: back_hat.shape[1]])
            transform.forward(u, u_hat)

        def exchange(transform=transform, back=back, forth=forth):
            rows, packed = transform._rows, transform._packed
            leaving, arriving = transform._blocks[back]
            transform._exchange(rows, arriving, packed, leaving)
            leaving, arriving = transform._blocks[forth]
            transform._exchange(packed, leaving, rows, arriving)

        def step(flow=flow):
            flow.stepper.step(flow.u_hat, 0.0, 1e-3)

        whole, transforms, exchanges = best([step, both, exchange], ranks, repeats=5)
        found[operators] = {
            "step": whole,
            "transforms": stages * max(transforms - exchanges, 0.0),
            "exchanges": stages * exchanges,
        }
    return found


# ---- fit and extrapolation ----


def fitted(measured: dict[tuple[int, int], dict[str, dict[str, float]]]) -> Machine:
    """The coefficients: medians of what is local, least squares of relative errors for the rest."""
    cores = os.cpu_count() or 1
    transform, pointwise = {}, {}
    equations = []
    for operators, (_, stages, components, exchanges, kept) in STEPS.items():
        local, rest = [], []
        for (n, ranks), found in measured.items():
            times = found[operators]
            points = max(1.0, ranks / cores) * stages * n**3 / ranks
            local.append(times["transforms"] / (points * components * math.log2(n**3)))
            rest.append((times["step"] - times["transforms"] - times["exchanges"]) / points)
            if ranks > 1:
                spent = times["exchanges"] / stages
                leaving = components * leaving_bytes(n, ranks, kept)
                equations.append([exchanges * (ranks - 1) / spent, leaving / spent])
        transform[operators], pointwise[operators] = np.median(local), np.median(rest)
    latency, per_byte = np.linalg.lstsq(np.array(equations), np.ones(len(equations)))[0]
    return Machine(transform, pointwise, max(latency, 0.0), 1 / per_byte, cores)


def cluster(here: Machine) -> Machine:
    """A node of 64 cores that share its memory, on a network of 200 Gbit/s per node.

    Full nodes halve the speed that a core has by itself; all bytes are taken to leave the node.
    """
    transform, pointwise = (
        {operators: 2 * seconds for operators, seconds in part.items()}
        for part in (here.transform, here.pointwise)
    )
    return Machine(transform, pointwise, latency=2e-6, bandwidth=25e9 / 64, cores=math.inf)


def measure() -> list[Figure]:
    """Coefficients, how well they fit, and what they say of large grids."""
    measured = {(n, p): launched(__file__, p, n) for p in RANKS for n in SIZES}
    here = fitted(measured)
    figures = []
    for operators in STEPS:
        figures += [
            Figure(f"{operators}: transform f", 1e9 * here.transform[operators], "ns"),
            Figure(f"{operators}: pointwise w", 1e9 * here.pointwise[operators], "ns"),
        ]
    figures += [
        Figure("message a", 1e6 * here.latency, "us"),
        Figure("bandwidth B of a rank", here.bandwidth / 1e9, "GB/s"),
    ]
    for operators in STEPS:
        for (n, p), found in measured.items():
            ratio = here.step(operators, n, p) / found[operators]["step"]
            figures.append(Figure(f"model / measured, {operators}, {n}^3, {p} rank(s)", ratio, "x"))
    there = cluster(here)
    for operators in STEPS:
        for n, p in ((512, 64), (512, 512), (1024, 256), (1024, 1024)):
            parts = there.parts(operators, n, p)
            name = f"cluster, {operators}, {n}^3 on {p} ranks: step"
            figures.append(Figure(name, 1e3 * sum(parts.values()), "ms"))
            for part, seconds in parts.items():
                figures.append(Figure(f"    {part}", 1e3 * seconds, "ms"))
    return figures


if __name__ == "__main__":
    world = Ranks.world()
    result = pieces(int(sys.argv[1]), world)
    if world.is_root:
        print(json.dumps(result))
