"""Poses of clips for tests of tracking."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame
from pretrain.tracking.pose import Pose, make_pose


def clip_states(library: MotionLibrary, count: int, seed: int = 0) -> CharacterState:
    return library.at(*library.sample(count, torch.Generator().manual_seed(seed)))


def pose_of(skeleton: Skeleton, state: CharacterState) -> Pose:
    return make_pose(skeleton, state, style_frame(skeleton, state))


def turned(state: CharacterState, angle: float, offset: Tensor) -> CharacterState:
    """`state` (N,) turned about the world's z axis, then moved by `offset` (3,) m."""
    turn = from_axis_angle("z", torch.full(state.shape, angle))
    return replace(
        state,
        root_pos=rotate(turn, state.root_pos) + offset,
        root_rot=multiply(turn, state.root_rot),
        root_vel=rotate(turn, state.root_vel),
        root_ang_vel=rotate(turn, state.root_ang_vel),
    )
