"""`hpcsim verify`: the quick version of every study, and what a study that fails leads to."""

import json

import numpy as np
import pytest

from hpcsim.parallel.ranks import Ranks
from hpcsim.terminal import Terminal
from hpcsim.verify import STUDIES, fluid, study
from tests.launch import hpcsim, messages


@pytest.mark.parametrize(("name", "ranks"), [(name, 1 + k % 2) for k, name in enumerate(STUDIES)])
def test_quick_study_holds(name, ranks, tmp_path):
    done = hpcsim("verify", name, "--quick", "--out", tmp_path / "made", ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "made" / f"{name}.json").read_text())
    assert facts["study"] == name
    assert facts["quick"] is True
    assert facts["rows"]
    assert facts["checks"]
    assert all(check["holds"] for check in facts["checks"])
    assert (tmp_path / "made" / f"{name}.png").stat().st_size > 10_000
    for check in facts["checks"]:
        assert f"{check['name']}" in done.stdout


def test_unknown_study():
    done = hpcsim("verify", "fluid-spcae")
    assert done.returncode == 2
    assert "did you mean fluid-space?" in messages(done)[0]


def test_a_number_out_of_its_bounds_fails(tmp_path, monkeypatch, capsys):
    """Exit code 1, the name of the study, and the number is kept all the same."""

    def bad(context):
        assert context.quick
        checks = [study.Check("two", 2.0, 0.0, 3.0), study.Check("ten", 10.0, 0.0, 3.0)]
        return study.Result([{"x": 1.0, "order": None}], checks, lambda figure: figure.subplots())

    monkeypatch.setattr(study, "load", lambda name: bad)
    ranks = Ranks.alone()
    code = study.verify(["fluid-space"], True, tmp_path, ranks, Terminal(ranks))
    assert code == 1
    assert "not as expected: fluid-space" in capsys.readouterr().out
    facts = json.loads((tmp_path / "fluid-space.json").read_text())
    assert [check["holds"] for check in facts["checks"]] == [True, False]
    assert study.Check("not a number", float("nan"), 0.0, 1.0).holds is False


def test_summit_of_a_parabola_is_exact():
    t = np.linspace(0, 2, 9)
    place, value = fluid.summit(t, 3 - (t - 1.13) ** 2)
    assert place == pytest.approx(1.13, abs=1e-12)
    assert value == pytest.approx(3, abs=1e-12)
    assert fluid.summit(t, t) == (2.0, 2.0)
