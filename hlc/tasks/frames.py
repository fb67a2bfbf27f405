"""Heading-frame transforms and rewards shared by the tasks."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.kinematics import forward
from pretrain.characters.rotations import (
    from_heading_frame,
    heading_direction,
    to_heading_frame,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState

SPEED_SHARPNESS = 4.0  # s^2/m^2


def place_in_heading(state: CharacterState, place: Tensor) -> Tensor:
    """Place (..., 3) m, world -> relative to the root, in its heading frame, (..., 3) m."""
    return to_heading_frame(heading_direction(state.root_rot), place - state.root_pos)


def level_place_in_heading(state: CharacterState, place: Tensor) -> Tensor:
    """Place on the ground (..., 2) m, world -> relative to the root, heading frame, (..., 2) m."""
    return direction_in_heading(state, place - state.root_pos[..., :2])


def direction_in_heading(state: CharacterState, direction: Tensor) -> Tensor:
    """Level vectors (..., 2), world -> in the root's heading frame, (..., 2)."""
    # `to_heading_frame` on a padded vector would add Pad to the graph, which the store rejects.
    c, s = heading_direction(state.root_rot).unbind(-1)
    x, y = direction.unbind(-1)
    return torch.stack([c * x + s * y, c * y - s * x], -1)


def place_from_heading(state: CharacterState, ahead: Tensor, left: Tensor) -> Tensor:
    """The place on the ground `ahead` and `left` (...) m of the root, (..., 2) m, world."""
    offset = torch.stack([ahead, left, torch.zeros_like(ahead)], -1)
    turned = from_heading_frame(heading_direction(state.root_rot), offset)
    return state.root_pos[..., :2] + turned[..., :2]


def direction_from_heading(state: CharacterState, angle: Tensor) -> Tensor:
    """Unit vectors (..., 2), world, at `angle` (...) rad to the left of the heading."""
    offset = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], -1)
    return from_heading_frame(heading_direction(state.root_rot), offset)[..., :2]


def body_position(skeleton: Skeleton, state: CharacterState, body: str) -> Tensor:
    """Origin of `body` by forward kinematics, (...) -> (..., 3) m, world."""
    positions, _ = forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)
    return positions[..., skeleton.bodies.index(body), :]


def reward_approach(state: CharacterState, direction: Tensor, speed: float) -> Tensor:
    """1 for a root that moves along level unit vectors `direction` (..., 2) at `speed` (m/s) or
    faster, less if slower, 0 at a standstill or moving away, (...)."""
    along = (state.root_vel[..., :2] * direction).sum(-1)
    missing = (speed - along).clamp_min(0)[..., None]
    return (along > 0) * gaussian(missing, SPEED_SHARPNESS)


def gaussian(error: Tensor, sharpness: float) -> Tensor:
    """exp(-sharpness * |error|^2), (..., n) -> (...): 1 without error."""
    return (-sharpness * error.square().sum(-1)).exp()
