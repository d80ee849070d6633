"""Speed of rods in a flow: a coupled step against the flow's, two ranks against one, rod forces.

`python scripts/bench/rod.py` is what is started, alone or under mpirun; it prints JSON.
"""

from __future__ import annotations

import json

from _flow import ready_flow

from hpcsim.bench import Figure, best, launched
from hpcsim.job import new_job
from hpcsim.models.rod.model import RodInFluid
from hpcsim.parallel.ranks import Ranks

POINTS, NODES, MANY = 64, 64, 1024
BENDING = ("couple", "force")
ROUNDS = 5


def ready_rod(nodes, ranks, bending, points):
    """The twisted rod at its start."""
    changes = {
        "rod.nodes": nodes,
        "rod.bending": bending,
        "fluid.n": [points] * 3,
        "time.dt": 1e-4,
        "time.end": 1.0,
        "output.every": 1.0,
    }
    model = RodInFluid(new_job("twisted-rod", changes, ranks.size).case, ranks)
    ranks.root_first(model.prepare)
    model.begin()
    return model


def times(ranks):
    """Seconds of a coupled step and of the flow's, by bending; of the forces of many nodes."""
    found = {}
    for bending in BENDING:
        coupled = ready_rod(NODES, ranks, bending, POINTS)
        flow = ready_flow(POINTS, ranks, "centred", "ars222")
        long = ready_rod(MANY, Ranks.alone(), bending, 16).rods
        works = [
            lambda coupled=coupled: coupled.advance(0, 1),
            lambda flow=flow: flow.advance(0, 1),
            lambda long=long: long.load(0.0),
        ]
        found[bending] = best(works, ranks)
    return found


def measure():
    """All figures of this file; ratios from the same round, the best round counts."""
    rounds = [(launched(__file__, 1), launched(__file__, 2)) for _ in range(ROUNDS)]
    figures = []
    for bending in BENDING:
        ratio = min(one[bending][0] / one[bending][1] for one, _ in rounds)
        speedup = max(one[bending][0] / two[bending][0] for one, two in rounds)
        nanoseconds = min(1e9 * one[bending][2] / MANY for one, _ in rounds)
        name = f"{bending}, {POINTS}^3 + {NODES} nodes"
        figures += [
            Figure(f"coupled step / the flow's, {name}", ratio, "x", 1.25),
            Figure(f"coupled step, 2 ranks / 1, {name}", speedup, "x", 1.4, most=False),
            Figure(f"rod force, {bending}, {MANY} nodes, per node", nanoseconds, "ns", 80),
        ]
    return figures


if __name__ == "__main__":
    world = Ranks.world()
    result = times(world)
    if world.is_root:
        print(json.dumps(result))
