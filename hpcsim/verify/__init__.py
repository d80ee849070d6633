"""Convergence and validation studies, by name. A study is one function and one line here."""

from __future__ import annotations

#: name → (what it shows, "module:function")
STUDIES = {
    "fluid-space": (
        "errors of a manufactured flow against grid spacing, by operators",
        "hpcsim.verify.fluid:space",
    ),
    "fluid-time": (
        "errors of a manufactured flow against step size, by time scheme",
        "hpcsim.verify.fluid:time",
    ),
    "rod-stiffness": (
        "stiffest modes of a rod in a fluid, by kernels: what limits dt",
        "hpcsim.verify.stiffness:study",
    ),
    "taylor-green": (
        "dissipation of the Taylor-Green vortex at Re 1600",
        "hpcsim.verify.fluid:taylor_green",
    ),
}
