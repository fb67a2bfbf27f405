"""The tracking reward of DeepMimic. (Peng et al. 2018, section 5.1, as in MimicKit.)"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.rotations import angle_between
from pretrain.characters.skeleton import Skeleton
from pretrain.tracking.config import DeepMimicConfig
from pretrain.tracking.pose import Pose, joint_angles_between

ROTATION_SHARE = 0.1  # m^2 / rad^2, of the root's rotation beside its position


def joint_weights(cfg: DeepMimicConfig, skeleton: Skeleton) -> Tensor:
    """`joint_err_w` (joints,). ValueError if it has no number for each of `skeleton.joints`."""
    bodies = [joint.body for joint in skeleton.joints]
    if len(cfg.joint_err_w) != len(bodies):
        raise ValueError(
            f"deepmimic.joint_err_w has {len(cfg.joint_err_w)} numbers; expected {len(bodies)}, "
            f"for {', '.join(bodies)}"
        )
    return torch.tensor(cfg.joint_err_w)


def deepmimic_reward(
    pose: Pose, reference: Pose, cfg: DeepMimicConfig, skeleton: Skeleton, weights: Tensor
) -> Tensor:
    """In 0 to 1 with MimicKit's weights, (N,); `weights` are `joint_weights`.

    Key bodies are compared relative to the root, each in its own heading frame."""
    state = pose.state
    other = reference.state
    counts = torch.tensor([len(joint.axes) for joint in skeleton.joints])
    hinge_weights = weights.repeat_interleave(counts)
    angles = joint_angles_between(skeleton, state.joint_pos, other.joint_pos)
    turn = angle_between(state.root_rot, other.root_rot)
    num_keys = len(skeleton.key_bodies)
    keys = (pose.frame - reference.frame)[:, -3 * num_keys :]
    root_pose = _square(state.root_pos - other.root_pos) + ROTATION_SHARE * turn.square()
    root_vel = _square(state.root_vel - other.root_vel)
    root_spin = _square(state.root_ang_vel - other.root_ang_vel)
    joint_vel = (state.joint_vel - other.joint_vel).square()
    terms = (
        (cfg.reward_pose_w, cfg.reward_pose_scale, (weights * angles.square()).sum(-1)),
        (cfg.reward_vel_w, cfg.reward_vel_scale, (hinge_weights * joint_vel).sum(-1)),
        (cfg.reward_root_pose_w, cfg.reward_root_pose_scale, root_pose),
        (cfg.reward_root_vel_w, cfg.reward_root_vel_scale, root_vel + ROTATION_SHARE * root_spin),
        (cfg.reward_key_pos_w, cfg.reward_key_pos_scale, _square(keys)),
    )
    return torch.stack([weight * (-scale * error).exp() for weight, scale, error in terms]).sum(0)


def _square(x: Tensor) -> Tensor:
    return x.square().sum(-1)
