from typing import get_args

import pytest

from hpcsim import models
from hpcsim.case.read import read_case, toml_value
from hpcsim.case.show import as_toml
from hpcsim.errors import InputError


def errors(name, changes=()):
    with pytest.raises(InputError) as caught:
        read_case(str(name), changes)
    return caught.value.lines


def case_file(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


GOOD = """
[case]
name = "mine"
model = "gyroscope"
[time]
end = 1.0
[output]
every = 0.1
"""


@pytest.mark.parametrize("name", models.builtin_cases())
def test_what_show_prints_is_the_same_case(name, tmp_path):
    case = read_case(name)
    shown = case_file(tmp_path, as_toml(case))
    assert read_case(str(shown)) == case
    assert as_toml(read_case(str(shown))) == as_toml(case)


@pytest.mark.parametrize("name", models.builtin_cases())
def test_every_key_is_shown_with_a_comment(name):
    case = read_case(name)
    lines = as_toml(case).splitlines()
    for number, line in enumerate(lines):
        if " = " in line and not line.startswith("#"):
            assert lines[number - 1].startswith("# "), line
    keys = {line.split(" = ")[0] for line in lines if not line.startswith("#")}
    for table in type(case).model_fields.values():
        (kind,) = get_args(table.annotation) or (table.annotation,)
        assert set(kind.model_fields) <= keys


def test_defaults_fill_what_a_file_leaves_out(tmp_path):
    case = read_case(str(case_file(tmp_path, GOOD)))
    assert case.time.scheme == "rk4"
    assert case.time.dt == "auto"
    assert case.ensemble.members == 1


def test_all_errors_at_once_each_with_file_key_value_and_what_is_allowed(tmp_path):
    path = case_file(
        tmp_path,
        GOOD.replace("end = 1.0", 'end = -1.0\nshceme = "rk4"\nscheme = "rk5"\nwall_limit = "long"')
        + "[strat]\ntilt = 1\n[start]\ntilt = 4\nspin = {rnage = [1, 2]}\n",
    )
    lines = errors(path)
    assert len(lines) == 7
    assert all(line.startswith(f"{path}: ") for line in lines)
    text = "\n".join(lines)
    assert "time.end = -1.0: must be greater than 0" in text
    assert "time.shceme: unknown key; did you mean scheme?" in text
    assert "allowed in [time]: end, dt, scheme, wall_limit" in text
    assert (
        "time.scheme = 'rk5': must be one of euler, midpoint, heun, rk3, rk4; did you mean rk"
        in text
    )
    assert "time.wall_limit = 'long': must be a valid number" in text
    assert "strat: unknown key; did you mean start?" in text
    assert "start.tilt = 4: must be between 0 and pi" in text
    assert "start.spin = {'rnage': [1, 2]}: must be a number, {range = [a, b]}" in text


def test_either_branch_of_a_choice_is_told_in_one_line():
    (line,) = errors("gyroscope", ["time.dt=fast"])
    assert line == "--set time.dt=fast: time.dt = 'fast': must be a valid number or \"auto\""
    (line,) = errors("gyroscope", ["time.dt=0"])
    assert "time.dt = 0: must be greater than 0" in line


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "true", '"1"', "[1]", "1979-05-27"])
def test_only_finite_numbers_are_numbers(value):
    (line,) = errors("gyroscope", [f"time.end={value}"])
    assert line.startswith(f"--set time.end={value}: time.end = ")
    assert "must be" in line


@pytest.mark.parametrize("value", ["nan", "0", "-3", "1.5", "true", "1000000000001"])
def test_members_is_a_positive_whole_number(value):
    (line,) = errors("gyroscope", [f"ensemble.members={value}"])
    assert "ensemble.members" in line


def test_missing_keys_and_tables_are_named(tmp_path):
    lines = errors(case_file(tmp_path, '[case]\nmodel = "gyroscope"\n[time]\ndt = 1.0\n'))
    told = [line.partition(": ")[2] for line in lines]
    assert told == ["case.name: missing key", "time.end: missing key", "output: missing table"]


def test_unknown_model_and_case_suggest_the_nearest(tmp_path):
    (line,) = errors(case_file(tmp_path, GOOD.replace('"gyroscope"', '"gyrosope"')))
    assert "case.model = 'gyrosope': unknown model; did you mean gyroscope? (allowed: " in line
    (line,) = errors("gyrosope")
    assert "did you mean gyroscope?" in line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"[case\n", "not valid TOML"),
        (b"a = 1\na = 2\n", "not valid TOML"),
        (b"\x89HDF\r\n\x1a\n\x00\xff\xfe", "not a text file"),
        (b"x = " + b"[" * 100_000, "not valid TOML"),
    ],
)
def test_files_that_are_no_case(content, told, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    (line,) = errors(path)
    assert line.startswith(f"{path}: {told}")


def test_missing_file_and_folder_in_place_of_a_file(tmp_path):
    assert "cannot be read: No such file" in errors(tmp_path / "none.toml")[0]
    (tmp_path / "dir.toml").mkdir()
    assert "cannot be read: Is a directory" in errors(tmp_path / "dir.toml")[0]


def test_tables_where_values_belong_and_values_where_tables_belong(tmp_path):
    text = "\n".join(errors("gyroscope", ["time=3", "output.every.x=1"]))
    assert "output.every is a value, not a table" in text
    (line,) = errors("gyroscope", ["time=3"])
    assert "time = 3: must be" in line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("2.5", 2.5),
        ("[48,48]", [48, 48]),
        ("{range = [1, 2]}", {"range": [1, 2]}),
        ('"a b"', "a b"),
        ("rk3", "rk3"),
        ("true", True),
        ("half-frames", "half-frames"),
    ],
)
def test_set_takes_toml_values_and_bare_words(text, value):
    assert toml_value(text) == value


@pytest.mark.parametrize("text", ["", "a b", "[1", "1\nx=2", "'", "=3"])
def test_set_refuses_what_is_neither(text):
    with pytest.raises(InputError):
        toml_value(text)


def test_set_without_a_key_or_sign():
    lines = errors("gyroscope", ["time.end", "=3"])
    assert len(lines) == 2
    assert all("write it as key=value" in line for line in lines)


def test_changes_may_be_a_mapping():
    assert read_case("gyroscope", {"time.end": 3.0, "time.scheme": "heun"}).time.end == 3.0
    (line,) = errors("gyroscope", {"time.ned": 3.0})
    assert "did you mean end?" in line


def test_a_list_must_be_as_long_as_the_ensemble():
    changes = ["ensemble.members=3", "start.tilt=1", "start.spin={list = [1, 2]}"]
    (line,) = errors("gyroscope", changes)
    assert "start.spin lists 2 values: must be 3, as many as ensemble.members" in line
