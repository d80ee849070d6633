"""The example of docs/adding-a-model.md is a model: it runs, restarts, and keeps its energy."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import hpcsim
from hpcsim import models

DOCUMENT = Path(hpcsim.__file__).parent / "docs" / "adding-a-model.md"
IMPORTS = """
import math
from hpcsim.case.schema import Table, key, table
from hpcsim.compiled import inlined
from hpcsim.ensemble import engine
from hpcsim.ensemble.engine import LANES
from hpcsim.ensemble.model import Ensemble, EnsembleCase, Invariant
from hpcsim.ensemble.parameters import AnyValue, Parameter, PositiveValue
"""
CASE = """
[case]
name = "pendulum"
model = "pendulum"
[time]
end = 2.0
[output]
every = 0.1
[ensemble]
members = 3
[swing]
angle = {range = [0.001, 2.0943951023931953]}
"""


@pytest.fixture
def pendulum(tmp_path, monkeypatch):
    """The documented code as a module, registered; gives the path of a case for it."""
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", DOCUMENT.read_text(), re.M | re.S)
    code = "\n".join(re.sub(rf"^{indent}", "", block, flags=re.M) for indent, block in blocks)
    (tmp_path / "pendulum_model.py").write_text(IMPORTS + code)
    (tmp_path / "pendulum.toml").write_text(CASE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(models.MODELS, "pendulum", "pendulum_model:Pendulum")
    return tmp_path / "pendulum.toml"


def test_the_documented_model_runs_and_is_right(pendulum, tmp_path):
    """At 120 degrees 1 m swings with a period of 2.7540898289 s: it hangs after a quarter."""
    quarter = 2.7540898289 / 4
    changes = {"time.end": quarter, "output.every": quarter, "time.dt": quarter / 200}
    run = hpcsim.run(str(pendulum), changes, out=tmp_path / "run", quiet=True)
    angle = run["ensemble/state"][-1, :, 0]
    assert angle[2] == pytest.approx(0.0, abs=1e-7)
    small = 0.001 * math.cos(math.sqrt(9.81) * quarter)
    assert angle[0] == pytest.approx(small, abs=1e-9)  # third order in the angle
    assert run.summary["figures"]["drift_energy"] < 1e-8
    assert run["ensemble/parameters/angle"][:].tolist() == [
        0.001,
        np.mean([0.001, 2 * np.pi / 3]),
        2 * np.pi / 3,
    ]
    assert run["ensemble/state"].attributes["dofs"] == ["angle", "rate"]


def test_it_restarts_to_the_same_bits(pendulum, tmp_path):
    whole = hpcsim.run(str(pendulum), out=tmp_path / "whole", quiet=True)
    hpcsim.run(str(pendulum), {"time.end": 1.0}, out=tmp_path / "cut", quiet=True)
    cut = hpcsim.run(
        str(pendulum), {"time.end": 2.0}, out=tmp_path / "cut", restart=True, quiet=True
    )
    np.testing.assert_array_equal(cut["ensemble/state"][:], whole["ensemble/state"][:])
