"""What policy, discriminator and encoder see of a state. Pure kernels.

Used by the env, the rewards and the ONNX export alike.
Everything is invariant to where the character stands and which way it faces.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.kinematics import ball_rotations, chained, joint_rotations
from pretrain.characters.rotations import facing, into_heading, tan_norm
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState

LEAST_SPREAD = 0.03  # of a feature of style over the clips: what hardly varies is no finer unit than this


def turned_tan_norm(toward: Tensor, root_rot: Tensor) -> Tensor:
    """Root rotation without its heading, as two axes. (..., 2), (..., 4) -> (..., 6)."""
    axes = tan_norm(root_rot)
    return torch.cat([into_heading(toward, axes[..., :3]), into_heading(toward, axes[..., 3:])], -1)


def proprioception(state: CharacterState) -> Tensor:
    """Policy observation, no kinematics in it: (...) -> (..., 13 + 2 J).

    Root height 1 | root rotation 6 | root velocity 3 | root angular velocity 3 | joint angles J | joint rates J,
    rotation and velocities in the heading frame.
    """
    toward = facing(state.root_rot)
    return torch.cat(
        [
            state.root_pos[..., 2:3],
            turned_tan_norm(toward, state.root_rot),
            into_heading(toward, state.root_vel),
            into_heading(toward, state.root_ang_vel),
            state.joint_pos,
            state.joint_vel,
        ],
        -1,
    )


def style_frame(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """What discriminator and encoder see of one state: (...) -> (..., F).

    Root height 1 | root rotation 6 | joint rotations, 6 a ball joint and 1 a hinge | root velocity 3 | root angular
    velocity 3 | key bodies from the root, 3 each; all in the state's own heading frame. A window is W such frames,
    oldest first: what nv-tlabs/ASE looks at, less the joint rates, which W frames already tell.
    """
    toward = facing(state.root_rot)
    turns = ball_rotations(skeleton, state.joint_pos)
    keys = key_positions(skeleton, state.root_rot, joint_rotations(skeleton, state.joint_pos, turns))
    hinges = [state.joint_pos[..., j.start : j.stop] for j in skeleton.joints if len(j.axes) == 1]
    vectors = torch.stack([state.root_vel, state.root_ang_vel, *keys], -2)
    return torch.cat(
        [
            state.root_pos[..., 2:3],
            turned_tan_norm(toward, state.root_rot),
            tan_norm(turns).flatten(-2),
            *hinges,
            into_heading(toward[..., None, :], vectors).flatten(-2),
        ],
        -1,
    )


def key_positions(skeleton: Skeleton, root_rot: Tensor, local: list[Tensor]) -> list[Tensor]:
    """Key bodies seen from the root, along world axes, given each body's turn against its parent: K tensors (..., 3) m."""
    positions, _ = chained(skeleton, torch.zeros_like(root_rot[..., :3]), root_rot, local)
    return [positions[..., skeleton.bodies.index(body), :] for body in skeleton.key_bodies]
