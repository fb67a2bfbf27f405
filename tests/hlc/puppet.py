"""The puppet: an engine without physics, whose joints reach their targets at once, whose root moves
at the commanded speeds, and which never falls.

Its skills are linear in z (forward speed, turn rate, three joints of the right arm), so that what a
controller can learn does not depend on pretraining."""

from __future__ import annotations

import math

import numpy as np
import torch
from onnx import helper
from torch import Tensor

from pretrain.characters.character import Character
from pretrain.characters.rotations import from_axis_angle, heading_direction, multiply
from pretrain.characters.state import CharacterState, unflatten
from tests import tiny

# Joint target per unit along one axis of z, rad. The neck's are the root's forward speed and turn
# rate.
GAINS = {
    "neck_y": 2.0,
    "neck_z": 3.0,
    "right_shoulder_x": 2.5,
    "right_shoulder_y": 2.0,
    "right_shoulder_z": 2.0,
}
DT = 1 / 30  # s
HEIGHT = 0.85  # m


def puppet_policy(hinges: tuple[str, ...]) -> bytes:
    """targets = M z: the i-th number of z sets the i-th joint of GAINS."""
    weight = np.zeros((tiny.STATE + tiny.LATENT, len(hinges)), np.float32)
    for i, (joint, gain) in enumerate(GAINS.items()):
        weight[tiny.STATE + i, hinges.index(joint)] = gain
    nodes = [
        helper.make_node("Concat", ["state", "z"], ["obs"], axis=1),
        helper.make_node("Gemm", ["obs", "weight"], ["targets"]),
    ]
    return tiny.model(nodes, {"weight": weight}, tiny.POLICY)


class StillBox:
    """A `FreeBox` that never moves and is never touched."""

    def __init__(self, num_envs: int, bodies: int):
        self._state = torch.zeros(num_envs, 13)
        self._state[:, 3] = 1.0
        self._touching = torch.zeros(num_envs, bodies, dtype=torch.bool)

    def state(self) -> Tensor:
        return self._state.clone()

    def place(self, ids: Tensor, state: Tensor) -> None:
        self._state[ids] = state

    def touching(self) -> Tensor:
        return self._touching


class PuppetEngine:
    """A `Backend` without physics."""

    def __init__(self, character: Character, num_envs: int, threads: int):
        skeleton = character.skeleton
        self.num_envs = num_envs
        self._hinges = skeleton.hinges
        self._bodies = len(skeleton.bodies)
        self.box = StillBox(num_envs, self._bodies) if character.box else None
        self._lower = torch.tensor(skeleton.lower)
        self._upper = torch.tensor(skeleton.upper)
        self._state = unflatten(torch.zeros(num_envs, 13 + 2 * skeleton.num_hinges)).map(
            torch.clone
        )
        self._state.root_rot[:, 0] = 1.0

    def state(self) -> CharacterState:
        return self._state.map(torch.clone)

    def touching(self) -> Tensor:
        return torch.zeros(self.num_envs, self._bodies, dtype=torch.bool)

    def place(self, ids: Tensor, state: CharacterState) -> None:
        """Upright, at rest, with the heading of `state`."""
        ahead = heading_direction(state.root_rot)
        self._state.root_pos[ids] = state.root_pos
        self._state.root_pos[ids, 2] = HEIGHT
        self._state.root_rot[ids] = from_axis_angle("z", torch.atan2(ahead[:, 1], ahead[:, 0]))
        for still in (
            self._state.root_vel,
            self._state.root_ang_vel,
            self._state.joint_pos,
            self._state.joint_vel,
        ):
            still[ids] = 0.0

    def advance(self, targets: Tensor) -> Tensor:
        speed, rate = (targets[:, self._hinges.index(joint)] for joint in ("neck_y", "neck_z"))
        ahead = heading_direction(self._state.root_rot)
        self._state.root_vel[:, :2] = speed[:, None] * ahead
        self._state.root_pos[:] += DT * self._state.root_vel
        self._state.root_ang_vel[:, 2] = rate
        self._state.root_rot[:] = multiply(from_axis_angle("z", DT * rate), self._state.root_rot)
        angles = torch.minimum(torch.maximum(targets, self._lower), self._upper)
        self._state.joint_vel[:] = ((angles - self._state.joint_pos) / DT).clamp(
            -math.tau, math.tau
        )
        self._state.joint_pos[:] = angles
        return torch.zeros(self.num_envs, dtype=torch.bool)

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        pass

    def snapshot(self) -> dict[str, Tensor]:
        return {}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        pass
