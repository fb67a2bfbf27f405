"""Film strips: a rollout as frames side by side, with a status bar."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from pretrain.characters.character import Character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.mujoco_cpu import compile_model

WIDTH = 80  # px, of a frame
HEIGHT = 112
# px of the shadow map: with MuJoCo's 4096 a frame takes twice as long
SHADOW_SIZE = 2048
BAR = 7  # px, below the frames
TITLE = 18  # px, above the frames
PER_ROW = 20  # frames
FIELD_OF_VIEW = 20  # degrees, from the lower edge of a frame to the upper
DISTANCE = 6.2  # m, of the camera: a frame shows 2.2 m by 1.6 m
EYE_HEIGHT = 0.8  # m above the ground, of the camera's target
ON_CLIP = "#3a9a4a"
UP = "#b0b0b0"
DOWN = "#d03020"


@dataclass(frozen=True)
class Strip:
    """A rollout of one character over T control steps."""

    title: str
    # (T, 7 + J) root position, root rotation and joint angles; (T, 14 + J) with the pose of a box
    qpos: Tensor
    stride: int  # control steps from one frame to the next
    colors: Sequence[str]  # of the bar, at each control step


class FilmStrip:
    """Draws a character; OSError of one line where rendering fails."""

    def __init__(self, character: Character):
        self._model = compile_model(character)
        view = self._model.vis.global_
        view.offwidth = WIDTH
        view.offheight = HEIGHT
        view.fovy = FIELD_OF_VIEW
        self._model.vis.quality.shadowsize = SHADOW_SIZE
        self._data = mujoco.MjData(self._model)
        free = self._model.jnt_type == mujoco.mjtJoint.mjJNT_FREE
        self._free = self._model.jnt_qposadr[free].tolist()  # of the root, and of the box
        self._camera = mujoco.MjvCamera()
        self._camera.distance = DISTANCE
        self._camera.elevation = -5
        self._camera.azimuth = 90  # along y
        self._camera.lookat[:] = (0, 0, EYE_HEIGHT)
        self._renderer = open_renderer(self._model)

    def close(self) -> None:
        self._renderer.close()

    def draw(self, strips: Sequence[Strip]) -> Image.Image:
        """One below the other, in rows of PER_ROW frames."""
        return stack([row for strip in strips for row in self._rows(strip)])

    def _rows(self, strip: Strip) -> list[Image.Image]:
        span = PER_ROW * strip.stride
        starts = range(0, len(strip.qpos), span)
        rows = []
        for start in starts:
            title = strip.title if start == 0 else f"from {start / CONTROL_RATE:.0f} s"
            rows.append(self._row(strip, title, start, span))
        return rows

    def _row(self, strip: Strip, title: str, start: int, span: int) -> Image.Image:
        row = Image.new("RGB", (PER_ROW * WIDTH, TITLE + HEIGHT + BAR), "white")
        pen = ImageDraw.Draw(row)
        pen.text((4, 1), title, fill="black", font=ImageFont.load_default(13))
        qpos = strip.qpos[start : start + span]
        for i, pose in enumerate(qpos[:: strip.stride]):
            row.paste(Image.fromarray(self._frame(pose.numpy())), (i * WIDTH, TITLE))
        step = WIDTH / strip.stride
        for i, color in enumerate(strip.colors[start : start + span]):
            box = (i * step, TITLE + HEIGHT + 1, (i + 1) * step, TITLE + HEIGHT + BAR - 1)
            pen.rectangle(box, fill=color)
        return row

    def _frame(self, qpos: np.ndarray) -> np.ndarray:
        """The character in `qpos` moved to the origin, where the light is, its box alike, (HEIGHT,
        WIDTH, 3)."""
        self._data.qpos[:] = qpos
        for start in self._free:
            self._data.qpos[start : start + 2] -= qpos[:2]
        mujoco.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        return self._renderer.render()


def stack(rows: Sequence[Image.Image]) -> Image.Image:
    """Pictures of one width, one below the other."""
    sheet = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    return sheet


def open_renderer(
    model: mujoco.MjModel, height: int = HEIGHT, width: int = WIDTH
) -> mujoco.Renderer:
    """For pictures (height, width) px. OSError of one line where rendering fails: MuJoCo raises
    another error for each MUJOCO_GL."""
    try:
        return mujoco.Renderer(model, height, width)
    except (AttributeError, ImportError, RuntimeError, mujoco.FatalError) as error:
        message = " ".join(str(error).split())
        reason = "nothing to draw with" if isinstance(error, AttributeError) else message
        failure = f"no rendering here (MUJOCO_GL={os.environ.get('MUJOCO_GL', '')}: {reason})"
        remedy = "install libegl1, or libosmesa6 and set MUJOCO_GL=osmesa"
        raise OSError(f"{failure}; {remedy}") from error
