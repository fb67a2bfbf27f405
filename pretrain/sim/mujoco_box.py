"""The free box of MuJoCo worlds: its model, and its views of the engine's memory."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from torch import Tensor

from pretrain.characters.box import Box
from pretrain.characters.rotations import conjugate, rotate

NAME = "box"
COLOR = (0.55, 0.42, 0.30, 1.0)


def add_box(spec: mujoco.MjSpec, box: Box, bodies: Sequence[str]) -> None:
    """Put `box` beside the character of `spec`, after it in qpos and qvel, with a contact sensor
    for each of `bodies`."""
    body = spec.worldbody.add_body(name=NAME, pos=(0.0, 2.0, box.size[2] / 2))
    body.add_freejoint(name=NAME)
    half = [length / 2 for length in box.size]
    body.add_geom(name=NAME, type=mujoco.mjtGeom.mjGEOM_BOX, size=half, mass=box.mass, rgba=COLOR)
    for name in bodies:
        sensor = spec.add_sensor(name=f"{name}_on_box", type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype = mujoco.mjtObj.mjOBJ_GEOM
        sensor.objname = NAME
        sensor.reftype = mujoco.mjtObj.mjOBJ_BODY
        sensor.refname = name
        sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND), 0, 1]


class MujocoBox:
    """A `FreeBox` over views of the engine's memory."""

    def __init__(self, qpos: np.ndarray, qvel: np.ndarray, contacts: np.ndarray):
        """The box's own columns: (N, 7), (N, 6) and (N, B)."""
        self._qpos = qpos
        self._qvel = qvel
        self._contacts = contacts

    def state(self) -> Tensor:
        pose = torch.from_numpy(self._qpos).float()
        velocity = torch.from_numpy(self._qvel).float()
        # a free joint's angular velocity is in the body's frame
        rate = rotate(pose[:, 3:], velocity[:, 3:])
        return torch.cat([pose, velocity[:, :3], rate], -1)

    def place(self, ids: Tensor, state: Tensor) -> None:
        rows = ids.numpy()
        rate = rotate(conjugate(state[:, 3:7]), state[:, 10:])
        self._qpos[rows] = state[:, :7].numpy()
        self._qvel[rows] = torch.cat([state[:, 7:10], rate], -1).numpy()

    def touching(self) -> Tensor:
        return torch.from_numpy(self._contacts > 0)
