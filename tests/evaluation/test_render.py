"""Pictures of skills: everyone is in them, and a machine that can't draw says so."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.characters.state import unflat
from pretrain.render import APART, ELEVATION, HEIGHT, MARGIN, VIEW, WIDTH, apart, main, side_view
from skills_store.store import BUNDLED


def seen(camera, points: np.ndarray) -> np.ndarray:
    """Where the camera shows points (P, 3): (P, 2), 1 at the right and the upper edge. From MuJoCo's definitions, along y."""
    e = np.radians(camera.elevation)
    axes = np.array(
        [[1, 0, 0], [0, -np.sin(e), np.cos(e)], [0, np.cos(e), np.sin(e)]]
    )  # right, up, ahead
    right, up, ahead = axes @ (points - camera.lookat).T
    slope = np.tan(np.radians(VIEW / 2))
    return (
        np.stack([right / (slope * WIDTH / HEIGHT), up / slope], -1)
        / (ahead + camera.distance)[:, None]
    )


@pytest.mark.parametrize(
    "spread", [(0.3, 0.3, 1.0), (12.0, 0.5, 1.0), (1.0, 6.0, 1.0), (9.0, 9.0, 2.5)]
)
def test_a_camera_shows_everyone_however_deep_their_path_is_and_from_no_farther_than_it_must(
    spread,
):
    points = np.random.default_rng(0).uniform(size=(200, 3)) * spread
    camera = side_view(points)
    assert (camera.azimuth, camera.elevation) == (90, ELEVATION)
    around = (
        points[:, None] + MARGIN * np.array([[1, 0, 0], [-1, 0, 0], [0, 0, 0.98], [0, 0, -0.98]])
    ).reshape(-1, 3)
    assert np.abs(seen(camera, around)).max() == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("pace", "shown"), [(0.1, APART), (-0.1, -APART), (1.5, 1.5), (0.0, APART)]
)
def test_who_stays_in_place_is_drawn_side_by_side_and_who_travels_where_it_was(pace, shown):
    still = unflat(torch.zeros(1, 69))
    states = [replace(still, root_pos=torch.tensor([[pace * i, 2.0, 0.9]])) for i in range(10)]
    places = torch.cat([state.root_pos for state in apart(states)])
    assert places[:, 0].diff().numpy() == pytest.approx(shown)
    assert (places[:, 1:] == torch.tensor([2.0, 0.9])).all()


def test_a_picture_of_another_kind_is_refused_before_anything_is_drawn(capsys):
    assert main(["out=walk.jpg"]) == 2
    assert capsys.readouterr().err == "out=walk.jpg: name a .png\n"


@pytest.mark.parametrize("gl", ["disabled", "osmesa", "glfw"])
def test_a_machine_that_cannot_draw_says_so_in_a_line(gl, tmp_path):
    asked = ["skill=humanoid@1", f"store={BUNDLED}", "clips=walk", f"out={tmp_path}/walk.png"]
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"} | {
        "MUJOCO_GL": gl
    }
    command = [sys.executable, "-m", "pretrain.render", *asked]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if not run.returncode:
        pytest.skip(f"MUJOCO_GL={gl} draws here")
    *_, said = run.stderr.splitlines()
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert said.startswith(f"no rendering here (MUJOCO_GL={gl}: ")
    assert said.endswith("); install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa")
