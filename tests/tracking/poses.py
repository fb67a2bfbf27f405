"""Poses of clips for tests of tracking."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.placement import place
from pretrain.characters.rotations import from_axis_angle
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
    return place(state, from_axis_angle("z", torch.full(state.shape, angle)), offset)
