"""Contact sheets: frames of clips side by side, one row per clip. Needs MuJoCo with rendering."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")  # before mujoco is imported; there may be no display

import numpy as np
from PIL import Image, ImageDraw

from pretrain.characters.character import load_character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.motion.clip import MotionClip

HEIGHT = 200
WIDTH = 130
TILES = 12  # frames of a clip
DISTANCE = 3.4
ELEVATION = -12  # m and degrees of the camera
AZIMUTH = 130  # degrees: seen from the right and ahead
LOOK_AT = 0.85  # m above the ground
SHADOW = 3.0  # of the scene's extent: with less, the shadow map's edge shows
TILE = 2.0  # m after which the floor repeats


def contact_sheet(clips: Sequence[MotionClip], tiles: int = TILES) -> Image.Image:
    """`tiles` frames of each clip, evenly over its time, from a camera that follows without
    turning.

    OSError where rendering fails."""
    model = mujoco.MjModel.from_xml_string(load_character(clips[0].skeleton.name).mjcf)
    model.vis.global_.offwidth = WIDTH
    model.vis.global_.offheight = HEIGHT
    model.vis.map.shadowclip = SHADOW
    data = mujoco.MjData(model)
    try:
        drawing = mujoco.Renderer(model, HEIGHT, WIDTH)
    except (AttributeError, ImportError, RuntimeError, mujoco.FatalError) as error:
        failure = f"no rendering here (MUJOCO_GL={os.environ.get('MUJOCO_GL', '')}: {error})"
        raise OSError(
            f"{failure}; install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa"
        ) from error
    with drawing:
        rows = [_row(clip, tiles, model, data, drawing) for clip in clips]
    sheet = Image.fromarray(np.concatenate(rows))
    pen = ImageDraw.Draw(sheet)
    for i, clip in enumerate(clips):
        pen.text((6, i * HEIGHT + 4), f"{clip.name}  {clip.duration:.2f} s", fill="black")
    return sheet


def _row(
    clip: MotionClip,
    tiles: int,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    drawing: mujoco.Renderer,
) -> np.ndarray:
    """(HEIGHT, tiles * WIDTH, 3) uint8."""
    camera = mujoco.MjvCamera()
    camera.distance = DISTANCE
    camera.elevation = ELEVATION
    camera.azimuth = AZIMUTH
    angles = clip.joint_pos
    pictures = []
    for frame in np.linspace(0, len(clip) - 1, tiles).round().astype(int):
        # near the origin, where shadows are drawn; the floor's pattern repeats
        place = clip.root_pos[frame] % np.array([TILE, TILE, np.inf])
        data.qpos[:] = np.concatenate([place, clip.root_rot[frame], angles[frame]])
        mujoco.mj_forward(model, data)
        camera.lookat[:] = [*place[:2], LOOK_AT]
        drawing.update_scene(data, camera)
        pictures.append(drawing.render().copy())
    return np.concatenate(pictures, 1)
