"""What the measurements of the fluid share."""

from hpcsim.job import new_job
from hpcsim.models.fluid.model import Fluid

#: Transforms of one component per stage in 3D, by operators.
TRANSFORMS = {"centred": 6, "spectral": 8}


def ready_flow(n, ranks, operators, scheme):
    """The Taylor-Green vortex on n points per axis, at its start."""
    changes = {
        "fluid.n": [n] * 3,
        "fluid.operators": operators,
        "time.scheme": scheme,
        "output.fields": [],
        "time.dt": 1e-3,
        "time.end": 1.0,
        "output.every": 1.0,
    }
    flow = Fluid(new_job("taylor-green-3d", changes, ranks.size).case, ranks)
    ranks.root_first(flow.prepare)
    flow.begin()
    return flow
