"""Thirteen kinds of bad input: exit 2, one clear line per error, and an untouched disk."""

import os
import subprocess

import pytest

from tests.launch import end, hpcsim, messages, start

GOOD = '[case]\nname = "mine"\nmodel = "gyroscope"\n[time]\nend = 1.0\n[output]\nevery = 0.1\n'


def case_with(old, new):
    return lambda folder: (folder / "mine.toml").write_text(GOOD.replace(old, new))


def binary(folder):
    (folder / "mine.toml").write_bytes(bytes(range(256)))


def non_empty(folder):
    (folder / "runs" / "gyroscope").mkdir(parents=True)
    (folder / "runs" / "gyroscope" / "precious.txt").write_text("keep")


def below_a_file(folder):
    (folder / "file").write_text("a file")


#: kind → (what is prepared, arguments, what each line must contain)
KINDS = {
    "unknown case": (
        None,
        ["gyrosope"],
        ["gyrosope: no such case or file; did you mean gyroscope?"],
    ),
    "unknown key": (
        case_with("end", "ned = 3\nend"),
        ["mine.toml"],
        ["mine.toml: time.ned: unknown key; did you mean end?"],
    ),
    "wrong type": (
        case_with("1.0", '"soon"'),
        ["mine.toml"],
        ["mine.toml: time.end = 'soon': must be a valid number"],
    ),
    "out of range": (
        case_with("1.0", "-2.0"),
        ["mine.toml"],
        ["mine.toml: time.end = -2.0: must be greater than 0"],
    ),
    "NaN": (
        case_with("1.0", "nan"),
        ["mine.toml"],
        ["mine.toml: time.end = nan: must be a finite"],
    ),
    "zero members": (
        None,
        ["gyroscope", "--set", "ensemble.members=0"],
        ["--set ensemble.members=0: ensemble.members = 0: must be greater than or equal to 1"],
    ),
    "broken TOML": (case_with("[time]", "[time"), ["mine.toml"], ["mine.toml: not valid TOML: "]),
    "binary file": (binary, ["mine.toml"], ["mine.toml: not a text file"]),
    "empty file": (lambda f: (f / "mine.toml").touch(), ["mine.toml"], ["mine.toml: empty"]),
    "missing file": (None, ["none.toml"], ["none.toml: cannot be read: No such file"]),
    "unwritable folder": (
        below_a_file,
        ["gyroscope", "--out", "file/run"],
        ["file/run: cannot be made: file is a file"],
    ),
    "non-empty folder": (non_empty, ["gyroscope"], ["runs/gyroscope: not empty; --restart"]),
    "several errors": (
        case_with("end", "wall_limit = -1\nned = 3\nend"),
        ["mine.toml", "--set", "output.every=true"],
        ["time.wall_limit = -1", "time.ned", "output.every = true"],
    ),
    "two ways at once": (None, ["gyroscope", "--restart", "--force"], ["exclude each other"]),
    "nothing to restart": (None, ["gyroscope", "--restart"], ["nothing to restart"]),
    "more memory than there is": (
        None,
        ["gyroscope", "--set", "ensemble.members=900000000", "--set", "start={}"],
        ["GiB free"],
    ),
    "unknown option": (None, ["gyroscope", "--sett", "x=1"], ["--sett"]),
}


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_bad_input(kind, ranks, tmp_path):
    prepare, arguments, expected = KINDS[kind]
    if prepare:
        prepare(tmp_path)
    before = tree(tmp_path)
    done = hpcsim("run", *arguments, ranks=ranks, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = messages(done)
    assert len(lines) == len(expected), done.stderr
    for text in expected:
        assert any(text in line for line in lines), lines
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert tree(tmp_path) == before


@pytest.mark.parametrize("ranks", [1, 3])
def test_read_only_file_system(ranks, tmp_path):
    place = tmp_path / "readonly"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        done = hpcsim("run", "gyroscope", "--out", place / "run", ranks=ranks)
        assert done.returncode == 2
        (line,) = messages(done)
        assert "no write permission" in line
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_busy_folder(ranks, tmp_path):
    folder = tmp_path / "run"
    slow = ["--set", "time.end=100000", "--set", "output.every=100"]
    process = start("run", "gyroscope", *slow, "--out", folder, ranks=2)
    try:
        while not (folder / "case.toml").exists():
            assert process.poll() is None
        for mode in ("--restart", "--force"):
            done = hpcsim("run", "gyroscope", mode, "--out", folder, ranks=ranks)
            assert done.returncode == 2
            (line,) = messages(done)
            assert line.endswith("run: in use by a run that is still going")
        assert process.poll() is None
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
    finally:
        end(process)
