import json
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from hpcsim import models
from hpcsim.errors import InputError, StorageError
from hpcsim.look import movie
from hpcsim.models.interface import Quantity
from hpcsim.output.segments import Recorder, gather
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share
from tests.launch import hpcsim, messages

QUANTITIES = {"series/level": Quantity((), "m")}
SIZE = tuple(round(inches * movie.DOTS_PER_INCH) for inches in movie.SIZE_INCHES)
#: the formats that can be written here; GIF always
ENDINGS = [".gif", *([".mp4"] if shutil.which("ffmpeg") else [])]
FAKE_FFMPEG = """#!/bin/sh
# Keeps what comes through the pipe, and its own arguments, as the movie.
for last; do :; done
{ echo "$@"; cat; } > "$last"
"""
FAILING_FFMPEG = """#!/bin/sh
echo 'first words' >&2
echo 'Unknown encoder' >&2
exit 3
"""


class Drawn:
    """A model as far as a movie needs one: its level fills the picture from below."""

    @staticmethod
    def draw_frame(run, figure, frame):
        axes = figure.subplots()
        axes.set_ylim(0.0, 1.0)
        axes.axhspan(0.0, run["series/level"][frame], color="black")


class Undrawn:
    """A model without a movie."""


def make_run(run, frames, model="drawn", gathered=True):
    ranks = Ranks.world()
    (run / "segments").mkdir(parents=True)
    (run / "case.toml").write_text("[case]\nname = 'test'\n")
    (run / "summary.json").write_text(json.dumps({"model": model, "status": "finished"}))
    recorder = Recorder(run / "segments", QUANTITIES, ranks, 0)
    recorder.write_constants({})
    for frame in range(frames):
        recorder.record(0.1 * frame, {"series/level": Share(np.array(frame / max(frames - 1, 1)))})
    recorder.seal(frames)
    if gathered:
        gather(run, {}, ranks)
    return run


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run of six frames, whose model draws them."""
    monkeypatch.setitem(models.MODELS, "drawn", f"{__name__}:Drawn")
    monkeypatch.setitem(models.MODELS, "undrawn", f"{__name__}:Undrawn")
    return make_run(tmp_path / "run", 6)


@pytest.fixture
def no_ffmpeg(monkeypatch, tmp_path):
    """A PATH on which there is none."""
    monkeypatch.setenv("PATH", str(tmp_path))


def install(text, tmp_path, monkeypatch):
    """Put a program called ffmpeg before all others."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ffmpeg").write_text(text)
    (tmp_path / "bin" / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


def frames_of(file):
    """The frames of a movie as brightness (frame, row, column), and its frames per second."""
    if file.suffix == ".mp4":
        command = ["ffmpeg", "-loglevel", "error", "-i", file]
        command += ["-f", "rawvideo", "-pix_fmt", "gray", "-"]
        raw = subprocess.run(command, capture_output=True, check=True).stdout
        return np.frombuffer(raw, np.uint8).reshape(-1, *SIZE[::-1]), None
    with Image.open(file) as image:
        count = image.n_frames
        found = []
        for frame in range(count):
            image.seek(frame)
            found.append(np.asarray(image.convert("L")))
        return np.stack(found), 1000 / image.info["duration"]


def dark(frames):
    """Share of dark pixels in every frame."""
    return (frames < 64).mean(axis=(1, 2))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_frame_is_drawn_in_its_turn(ending, run, tmp_path):
    out = tmp_path / f"film{ending}"
    assert movie.animate(run, out) == out
    frames, speed = frames_of(out)
    assert frames.shape == (6, *SIZE[::-1])
    if speed:
        assert speed == movie.SLOWEST
    level = dark(frames)
    assert (np.diff(level) > 0.1).all()
    np.testing.assert_allclose(np.diff(level), (level[-1] - level[0]) / 5, rtol=0.05)
    assert [path.name for path in tmp_path.glob("film*")] == [out.name]


def test_default_is_a_gif_without_ffmpeg(run, no_ffmpeg):
    assert movie.animate(run) == run / "movie.gif"
    assert len(frames_of(run / "movie.gif")[0]) == 6


def test_default_is_an_mp4_with_ffmpeg(run, tmp_path, monkeypatch):
    """What ffmpeg gets, seen by a program in its place: arguments and pixels of every frame."""
    install(FAKE_FFMPEG, tmp_path, monkeypatch)
    assert movie.animate(run) == run / "movie.mp4"
    words, _, pixels = (run / "movie.mp4").read_bytes().partition(b"\n")
    assert f"-f rawvideo -pix_fmt rgba -s {SIZE[0]}x{SIZE[1]} -r 10 -i -" in words.decode()
    frames = np.frombuffer(pixels, np.uint8).reshape(6, SIZE[1], SIZE[0], 4)
    assert (frames[..., 3] == 255).all()
    assert (np.diff(dark(frames[..., 0])) > 0.1).all()
    assert not list(run.glob("*.part"))


def test_ffmpeg_that_fails_is_quoted(run, tmp_path, monkeypatch):
    install(FAILING_FFMPEG, tmp_path, monkeypatch)
    with pytest.raises(StorageError, match=r"movie.mp4: ffmpeg cannot write it: Unknown encoder$"):
        movie.animate(run)
    assert not list(run.glob("movie*"))


def test_mp4_without_ffmpeg_says_what_to_do(run, tmp_path, no_ffmpeg):
    with pytest.raises(InputError, match=r"needs ffmpeg, which is not on the PATH.*ends in .gif"):
        movie.animate(run, tmp_path / "film.mp4")


def test_unknown_ending_names_the_allowed_ones(run, tmp_path):
    with pytest.raises(InputError, match=r"film.avi: unknown movie format; allowed: .mp4, .gif"):
        movie.animate(run, tmp_path / "film.avi")


def test_a_long_run_is_thinned_evenly(run, tmp_path, monkeypatch):
    for total in (1, 2, 199, 200, 201, 399, 1000):
        frames = movie.chosen(total)
        assert frames[0] == 0
        assert frames[-1] == total - 1
        assert len(frames) == min(total, 200)
        assert np.ptp(np.diff(frames)) <= 1 if total > 1 else True
        assert total == 1 or np.diff(frames).min() >= 1
    monkeypatch.setattr(movie, "MOST_FRAMES", 3)
    frames, _ = frames_of(movie.animate(run, tmp_path / "film.gif"))
    level = dark(frames)
    assert len(level) == 3
    np.testing.assert_allclose(level[1] - level[0], 0.4 * (level[2] - level[0]), rtol=0.05)


def test_a_run_that_is_still_going(run, tmp_path, no_ffmpeg):
    going = make_run(tmp_path / "going", 2, gathered=False)
    assert len(frames_of(movie.animate(going))[0]) == 2


def test_no_frames(run, tmp_path):
    empty = make_run(tmp_path / "empty", 0)
    with pytest.raises(InputError, match="empty: holds no frames yet"):
        movie.animate(empty, tmp_path / "film.gif")


def test_a_model_without_a_movie(run, tmp_path):
    other = make_run(tmp_path / "other", 2, model="undrawn")
    with pytest.raises(InputError, match="other: model undrawn has no movie"):
        movie.animate(other, tmp_path / "film.gif")


def test_an_interrupted_movie_leaves_the_old_one(run, tmp_path, monkeypatch):
    out = tmp_path / "film.gif"
    out.write_bytes(b"old")

    def stop(run, figure, frame):
        if frame == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Drawn, "draw_frame", staticmethod(stop))
    with pytest.raises(KeyboardInterrupt):
        movie.animate(run, out)
    assert out.read_bytes() == b"old"
    assert [path.name for path in tmp_path.glob("film*")] == ["film.gif"]


def test_a_folder_that_cannot_be_written(run, tmp_path):
    with pytest.raises(StorageError, match=r"film.gif: cannot be written"):
        movie.animate(run, tmp_path / "missing" / "film.gif")


# ---- as a command ----


def test_command(run, tmp_path):
    """In this process, for the model is registered here alone."""
    from click.testing import CliRunner

    from hpcsim.cli import hpcsim as command

    done = CliRunner().invoke(command, ["movie", str(run), "--out", str(tmp_path / "film.gif")])
    assert done.exit_code == 0
    assert done.output == f"movie: {tmp_path / 'film.gif'}\n"
    assert len(frames_of(tmp_path / "film.gif")[0]) == 6


def test_command_refuses_in_one_line(tmp_path):
    done = hpcsim("movie", tmp_path, "--out", tmp_path / "film.gif")
    assert done.returncode == 2
    assert "not a run folder" in messages(done)[0]
    assert len(done.stderr.splitlines()) == 1
    assert "mp4" in hpcsim("movie", "--help").stdout
