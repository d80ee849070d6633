"""The models, by name. A model is one folder and one line here; its cases lie beside it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

#: name in a case file → "module:class"
MODELS = {
    "fluid": "hpcsim.models.fluid.model:Fluid",
    "rod": "hpcsim.models.rod.model:RodInFluid",
    "gyroscope": "hpcsim.models.tops.gyroscope:Gyroscope",
}


def load(name: str) -> Any:
    """The class of a model (see `interface.Model`)."""
    module, _, kind = MODELS[name].partition(":")
    return getattr(importlib.import_module(module), kind)


def builtin_cases() -> dict[str, Path]:
    """The built-in cases: name → TOML file."""
    files = Path(__file__).parent.glob("*/cases/*.toml")
    return {file.stem: file for file in sorted(files)}
