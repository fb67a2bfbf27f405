"""Pose: a character's state with its style frame; differences between it and a reference."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from pretrain.characters.kinematics import ball_rotations
from pretrain.characters.rotations import (
    angle_between,
    from_heading_frame,
    heading_direction,
    to_heading_frame,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.sim.features import key_offsets


@dataclass(frozen=True)
class Pose:
    """States (N,), their style frames (N, F), and where root and key bodies are."""

    state: CharacterState
    frame: Tensor
    points: Tensor  # (N, 1 + K, 3) m, world: root, key bodies


def make_pose(skeleton: Skeleton, state: CharacterState, frame: Tensor) -> Pose:
    """From states (N,) and their style frames (N, F)."""
    heading = heading_direction(state.root_rot)[:, None]
    root = state.root_pos[:, None]
    keys = root + from_heading_frame(heading, key_offsets(skeleton, frame))
    return Pose(state, frame, torch.cat([root, keys], 1))


def point_distances(pose: Pose, reference: Pose) -> Tensor:
    """Distances of root and key bodies from the reference's, (N, 1 + K) m."""
    return (pose.points - reference.points).norm(dim=-1)


def joint_angles_between(skeleton: Skeleton, a: Tensor, b: Tensor) -> Tensor:
    """Angles between the joints' rotations at hinge angles (..., J) and (..., J), in the order of
    `skeleton.joints`, (..., joints) rad."""
    balls = angle_between(ball_rotations(skeleton, a), ball_rotations(skeleton, b))
    angles: list[Tensor] = []
    ball = 0
    for joint in skeleton.joints:
        if len(joint.axes) == 3:
            angles.append(balls[..., ball])
            ball += 1
        else:
            angles.append((a - b)[..., joint.start].abs())
    return torch.stack(angles, -1)


def pose_difference(pose: Pose, reference: Pose) -> Tensor:
    """Reference minus character, (N, F + 4 + J), 0 where they agree.

    Style frames F | horizontal offset of the root 2 m | heading, as cosine - 1 and sine, 2 | hinge
    rates J; offset and heading in the character's heading frame."""
    state = pose.state
    other = reference.state
    heading = heading_direction(state.root_rot)
    offset = to_heading_frame(heading, other.root_pos - state.root_pos)[:, :2]
    ahead = pad(heading_direction(other.root_rot), (0, 1))
    turn = to_heading_frame(heading, ahead)[:, :2] - torch.tensor([1.0, 0.0])
    return torch.cat(
        [
            reference.frame - pose.frame,
            offset,
            turn,
            other.joint_vel - state.joint_vel,
        ],
        -1,
    )
