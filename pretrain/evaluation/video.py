"""Video: a rollout as an animated picture, with a camera that follows the character."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from pathlib import Path

from PIL import Image
from torch import Tensor

from pretrain.characters.character import Character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.evaluation.film_strip import EYE_HEIGHT, open_renderer
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.mujoco_cpu import compile_model

WIDTH = 400  # px
HEIGHT = 300
EVERY = 2  # control steps from one frame to the next
DISTANCE = 4.5  # m, of the camera
SUFFIXES = (".gif", ".webp")


def write_video(qpos: Tensor, character: Character, path: Path) -> None:
    """Write poses (T, 7 + J), or (T, 14 + J) with a box, at the control rate to `path`, whose
    suffix is one of SUFFIXES. OSError where rendering fails."""
    frames = render_frames(qpos[::EVERY], character)
    milliseconds = round(1000 * EVERY / CONTROL_RATE)
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)


def render_frames(qpos: Tensor, character: Character) -> list[Image.Image]:
    """A picture of each of the poses."""
    model = compile_model(character)
    model.vis.global_.offwidth = WIDTH
    model.vis.global_.offheight = HEIGHT
    data = mujoco.MjData(model)
    camera = mujoco.MjvCamera()
    camera.distance = DISTANCE
    camera.elevation = -15
    camera.azimuth = 135
    renderer = open_renderer(model, HEIGHT, WIDTH)
    frames: list[Image.Image] = []
    try:
        for pose in qpos.numpy():
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            camera.lookat[:] = (pose[0], pose[1], EYE_HEIGHT)
            renderer.update_scene(data, camera)
            frames.append(Image.fromarray(renderer.render()))
    finally:
        renderer.close()
    return frames
