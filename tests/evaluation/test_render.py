"""Film strips: frames, status bars, and the error of a machine that cannot render."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from pretrain.evaluation.film_strip import (
    BAR,
    DOWN,
    HEIGHT,
    ON_CLIP,
    PER_ROW,
    TITLE,
    UP,
    WIDTH,
    FilmStrip,
    Strip,
    stack,
)
from pretrain.render import hold_clips, main, random_minute
from skills_store.store import BUNDLED
from tests.evaluation import playback


@pytest.fixture(scope="module")
def data():
    return playback.training_data()


def test_a_played_clip_is_green_throughout(data, monkeypatch):
    playback.playback(monkeypatch, data)
    strips = hold_clips(playback.setup_of(playback.conditioned(data), data), ["walk", "lie"])
    assert [strip.title for strip in strips] == [
        f"{clip}: on clip 100% of 10 s, 0 falls" for clip in ("walk", "lie")
    ]
    assert {color for strip in strips for color in strip.colors} == {ON_CLIP}
    assert {len(strip.qpos) for strip in strips} == {300}


def test_falls_are_red_and_counted(data, monkeypatch):
    playback.playback(monkeypatch, data, falls=True)
    setup = playback.setup_of(playback.conditioned(data), data)
    (strip,) = hold_clips(setup, ["walk"])
    assert strip.title.endswith("5 falls")
    assert 60 < sum(color == DOWN for color in strip.colors) < 90
    minute = random_minute(setup)
    assert len(minute.colors) == 1800
    assert set(minute.colors) == {UP, DOWN}


def test_an_unknown_clip_is_refused_and_the_others_named(data, monkeypatch):
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    with pytest.raises(ValueError, match=r"no clip 'jump'; there are: stand, walk"):
        hold_clips(setup, ["jump"])


class StubRenderer:
    """Paints every frame in one color: MuJoCo's renderer is chosen at its first import."""

    def update_scene(self, data, camera) -> None:
        self.height = float(data.qpos[2])

    def render(self) -> np.ndarray:
        return np.full((HEIGHT, WIDTH, 3), round(100 * self.height), np.uint8)

    def close(self) -> None:
        pass


def test_rows_are_filled_with_frames_and_more_rows_follow(humanoid, monkeypatch):
    monkeypatch.setattr("pretrain.evaluation.film_strip.open_renderer", lambda _: StubRenderer())
    pose = torch.zeros(7 + 28)
    pose[2] = 0.9
    pose[3] = 1.0
    short = Strip("short", pose.expand(40, -1), 2, [UP] * 40)
    long = Strip("long", pose.expand(60, -1), 2, [DOWN] * 60)
    picture = np.asarray(FilmStrip(humanoid).draw([short, long]))
    row = TITLE + HEIGHT + BAR
    assert picture.shape == (3 * row, PER_ROW * WIDTH, 3)
    assert (picture[TITLE : TITLE + HEIGHT] == 90).all()
    bar = picture[TITLE + HEIGHT + BAR // 2]
    assert (bar == (0xB0, 0xB0, 0xB0)).all()
    last = picture[3 * row - BAR // 2 - 1]
    half = PER_ROW * WIDTH // 2
    assert (last[: half - 1] == (0xD0, 0x30, 0x20)).all()
    assert (last[half + 1 :] == 255).all()  # half a row is left


def test_pictures_are_stacked():
    rows = [Image.new("RGB", (10, height), color) for height, color in ((2, "red"), (3, "blue"))]
    whole = np.asarray(stack(rows))
    assert whole.shape == (5, 10, 3)
    assert (whole[:2] == (255, 0, 0)).all()
    assert (whole[2:] == (0, 0, 255)).all()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("out=walk.jpg", "out=walk.jpg: name a .png"),
        ("random=yes", "random=yes is neither true nor false"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_drawn(argument, message, capsys):
    assert main([argument]) == 2
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.parametrize("gl", ["disabled", "osmesa", "glfw"])
def test_missing_renderer_is_a_one_line_error(gl, tmp_path):
    arguments = ["skill=humanoid@1", f"store={BUNDLED}", "clips=walk", f"out={tmp_path}/walk.png"]
    kept = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    run = subprocess.run(
        [sys.executable, "-m", "pretrain.render", *arguments],
        env=kept | {"MUJOCO_GL": gl},
        capture_output=True,
        text=True,
        check=False,
    )
    if not run.returncode:
        pytest.skip(f"MUJOCO_GL={gl} draws here")
    *_, message = run.stderr.splitlines()
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert message.startswith(f"no rendering here (MUJOCO_GL={gl}: ")
    assert message.endswith("); install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa")
