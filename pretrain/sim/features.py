"""Features of a state: the inputs of policy, discriminator and encoder. Pure kernels.

The environment, the rewards and the ONNX export all use them. All features are invariant to the
character's position and heading."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.kinematics import ball_rotations, chain_rotations, joint_rotations
from pretrain.characters.rotations import heading_direction, tan_norm, to_heading_frame
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState

MIN_STD = 0.03  # lower bound on the std of a style feature over the clips


def measure_std(features: Tensor) -> Tensor:
    """The unit of each style feature: its std over the rows (M, K), at least MIN_STD, (K,)."""
    return features.std(0).clamp_min(MIN_STD)


def heading_tan_norm(heading: Tensor, root_rot: Tensor) -> Tensor:
    """Root rotation without its heading, as two axes. (..., 2), (..., 4) -> (..., 6)."""
    axes = tan_norm(root_rot)
    return torch.cat(
        [to_heading_frame(heading, axes[..., :3]), to_heading_frame(heading, axes[..., 3:])], -1
    )


def proprioception(state: CharacterState) -> Tensor:
    """Policy observation, without kinematics: (...) -> (..., 13 + 2 J).

    Root height 1 | root rotation 6 | root velocity 3 | root angular velocity 3 | joint angles J |
    joint velocities J, rotation and velocities in the heading frame."""
    heading = heading_direction(state.root_rot)
    return torch.cat(
        [
            state.root_pos[..., 2:3],
            heading_tan_norm(heading, state.root_rot),
            to_heading_frame(heading, state.root_vel),
            to_heading_frame(heading, state.root_ang_vel),
            state.joint_pos,
            state.joint_vel,
        ],
        -1,
    )


def style_frame(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """The input of discriminator and encoder from one state: (...) -> (..., F).

    Root height 1 | root rotation 6 | joint rotations, 6 per ball joint and 1 per hinge | root
    velocity 3 | root angular velocity 3 | key bodies from the root, 3 each; all in the state's own
    heading frame. A window is W such frames, oldest first: the features of nv-tlabs/ASE without the
    joint velocities, which W frames contain."""
    heading = heading_direction(state.root_rot)
    balls = ball_rotations(skeleton, state.joint_pos)
    keys = key_positions(
        skeleton, state.root_rot, joint_rotations(skeleton, state.joint_pos, balls)
    )
    hinges = [state.joint_pos[..., j.start : j.stop] for j in skeleton.joints if len(j.axes) == 1]
    vectors = torch.stack([state.root_vel, state.root_ang_vel, *keys], -2)
    return torch.cat(
        [
            state.root_pos[..., 2:3],
            heading_tan_norm(heading, state.root_rot),
            tan_norm(balls).flatten(-2),
            *hinges,
            to_heading_frame(heading[..., None, :], vectors).flatten(-2),
        ],
        -1,
    )


def key_offsets(skeleton: Skeleton, frame: Tensor) -> Tensor:
    """Key bodies from the root, in its heading frame: style frames (..., F) -> (..., K, 3) m."""
    return frame[..., -3 * len(skeleton.key_bodies) :].unflatten(-1, (-1, 3))


def key_positions(skeleton: Skeleton, root_rot: Tensor, local: list[Tensor]) -> list[Tensor]:
    """Key bodies relative to the root, along world axes, given each body's rotation relative to its
    parent: K tensors (..., 3) m."""
    positions, _ = chain_rotations(skeleton, torch.zeros_like(root_rot[..., :3]), root_rot, local)
    return [positions[..., skeleton.bodies.index(body), :] for body in skeleton.key_bodies]
