"""Foot slide: how fast feet move over the ground while they stand on it. A shuffling body turns and
steps aside without lifting a foot."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.kinematics import forward, lowest_points_of
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE

STANDING = 0.01  # m: a foot whose lowest point is lower stands
# Control steps over which a foot's displacement is measured. Over a single step contacts chatter: a
# standing body's feet move at 0.1 m/s to and fro, even under constant targets.
SPAN = 6


@dataclass(frozen=True)
class Feet:
    """Positions of feet, and which of them stand."""

    pos: Tensor  # (..., feet, 2) m, of the bodies' origins (the ankles), level, in the world
    stands: Tensor  # (..., feet) bool

    def __getitem__(self, index: tuple[slice, slice]) -> Feet:
        return Feet(self.pos[index], self.stands[index])


def read_feet(skeleton: Skeleton, state: CharacterState) -> Feet:
    """The feet of characters in `state` (...)."""
    feet = [skeleton.bodies.index(foot) for foot in skeleton.feet]
    poses = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    return Feet(poses[0][..., feet, :2], lowest_points_of(skeleton, poses, feet) < STANDING)


def foot_slide(feet: Feet, up: Tensor) -> Tensor:
    """Mean speed of the feet (T, n, feet) of n worlds over all spans of SPAN control steps in which
    they stand and their world is `up` (T, n) bool, (n,) m/s; NaN where there are none.

    The ankle of a foot that rolls over its toes also moves: compare with the clip's slide."""
    if len(feet.pos) <= SPAN:
        return torch.full(feet.pos.shape[1:2], torch.nan)
    speed = (feet.pos[SPAN:] - feet.pos[:-SPAN]).norm(dim=-1) * CONTROL_RATE / SPAN
    stood = feet.stands & up[..., None]
    counted = stood.unfold(0, SPAN + 1, 1).all(-1)
    total = torch.where(counted, speed, 0.0).sum((0, 2))
    return total / counted.sum((0, 2))
