"""The largest explicit step of an elastic rod in a fluid, from stored constants of kernels.

    (2/ω)⁻² = b/(C_b ρ h^(d+1)) + a/(C_a ρ h^(d+3))     d axes, h the width of a cell

with b the stretching and a the bending stiffness. `hpcsim verify rod-stiffness` computes the
constants; both ways of coupling are stable up to ω dt = 2 without viscosity, and viscosity helps.
"""

from __future__ import annotations

import math

#: Part of the limit that dt = "auto" takes.
SAFETY = 0.8
#: C_a grows less than by the width of a dilated kernel where couples act by differences over 2h.
COUPLE_DILATED = 0.45

#: kernel → bending → number of axes → (C_a, C_b)
CONSTANTS: dict[str, dict[str, dict[int, tuple[float, float]]]] = {
    "s3": {
        "couple": {2: (23.1, 14.4), 3: (46.2, 30.8)},
        "force": {2: (2.83, 21), 3: (6.14, 32.6)},
    },
    "s4": {
        "couple": {2: (58.6, 55.1), 3: (156, 113)},
        "force": {2: (11.3, 66.3), 3: (29.6, 113)},
    },
    "s5": {
        "couple": {2: (10.8, 7.62), 3: (16.8, 11.5)},
        "force": {2: (1.35, 10.9), 3: (2.31, 11.5)},
    },
    "s6": {
        "couple": {2: (19.7, 17.5), 3: (37.6, 27.5)},
        "force": {2: (3.31, 22.4), 3: (6.96, 27.5)},
    },
    "t": {
        "couple": {2: (58.8, 55.8), 3: (157, 113)},
        "force": {2: (11.4, 66.5), 3: (31.9, 113)},
    },
    "spl2": {
        "couple": {2: (4.46, 1.21), 3: (4.07, 1.09)},
        "force": {2: (0.432, 1.21), 3: (0.391, 1.09)},
    },
    "i2": {
        "couple": {2: (4.46, 1.21), 3: (4.07, 1.09)},
        "force": {2: (0.55, 1.21), 3: (0.475, 1.09)},
    },
    "i4": {
        "couple": {2: (4.46, 1.21), 3: (4.07, 1.09)},
        "force": {2: (0.499, 1.21), 3: (0.475, 1.09)},
    },
    "i6": {
        "couple": {2: (4.46, 1.21), 3: (4.07, 1.09)},
        "force": {2: (0.472, 1.21), 3: (0.472, 1.09)},
    },
    "wl0": {
        "couple": {2: (26.1, 15.4), 3: (52.2, 35.6)},
        "force": {2: (3.03, 21), 3: (7.52, 37.5)},
    },
    "wl2": {
        "couple": {2: (3.36, 0.863), 3: (2.59, 0.697)},
        "force": {2: (0.359, 0.863), 3: (0.264, 0.697)},
    },
    "wl4": {
        "couple": {2: (0.807, 0.196), 3: (0.327, 0.0866)},
        "force": {2: (0.0673, 0.196), 3: (0.0275, 0.0866)},
    },
    "smoothed-i2": {
        "couple": {2: (16.8, 7.83), 3: (28.3, 12.1)},
        "force": {2: (1.6, 8), 3: (3.66, 12.1)},
    },
    "smoothed-t": {
        "couple": {2: (75, 72.8), 3: (214, 148)},
        "force": {2: (15.8, 81.7), 3: (46, 148)},
    },
    "smoothed-s3": {
        "couple": {2: (33.2, 24), 3: (73, 54.6)},
        "force": {2: (4.58, 39.3), 3: (11.4, 54.6)},
    },
    "smoothed-s4": {
        "couple": {2: (74.5, 72.8), 3: (211, 146)},
        "force": {2: (15.6, 81.2), 3: (45.2, 146)},
    },
}


def largest_step(
    kernel: str,
    bending: str,
    dim: int,
    dilation: int,
    h: float,
    density: float,
    stretch: float,
    bend: float,
) -> float:
    """SAFETY × 2/ω of the stiffest mode [s]; stiffnesses in N and N m² (2D: per metre)."""
    c_bend, c_stretch = CONSTANTS[kernel][bending][dim]
    if dilation > 1 and bending == "couple":
        c_bend *= COUPLE_DILATED
    width = dilation * h
    square = stretch / (c_stretch * width ** (dim + 1)) + bend / (c_bend * width ** (dim + 3))
    return SAFETY / math.sqrt(square / density)
