"""A folder belongs to one run at a time."""

import pytest

from hpcsim.errors import InputError
from hpcsim.output.folder import RunFolder, free_name
from hpcsim.parallel.ranks import Ranks


def claimed(path, **how):
    folder = RunFolder(path)
    folder.claim(how.get("restart", False), how.get("force", False), Ranks.world())
    return folder


def test_a_second_claim_is_refused_until_the_first_is_released(tmp_path):
    first = claimed(tmp_path / "run")
    assert RunFolder(tmp_path / "run").busy()
    first.write_case("[case]\n")
    for how in ({}, {"restart": True}, {"force": True}):
        with pytest.raises(InputError):
            claimed(tmp_path / "run", **how)
    first.release()
    assert not RunFolder(tmp_path / "run").busy()
    claimed(tmp_path / "run", restart=True).release()


def test_a_run_that_came_between_check_and_lock_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr(RunFolder, "check_free", lambda *_: None)
    first = claimed(tmp_path / "run")
    first.write_case("[case]\n")
    first.release()
    with pytest.raises(InputError, match="in use"):
        claimed(tmp_path / "run")
    second = claimed(tmp_path / "run", restart=True)
    with pytest.raises(InputError, match="in use"):
        claimed(tmp_path / "run", force=True)
    second.release()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_force_sets_aside_under_a_free_name(tmp_path):
    for number in range(3):
        folder = claimed(tmp_path / "run", force=True)
        folder.write_case(f"run {number}")
        folder.release()
    assert (tmp_path / "run.1" / "case.toml").read_text() == "run 0"
    assert (tmp_path / "run.2" / "case.toml").read_text() == "run 1"
    assert free_name(tmp_path / "run").name == "run.3"
