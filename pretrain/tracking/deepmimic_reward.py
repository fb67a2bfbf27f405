"""The tracking reward of DeepMimic. (Peng et al. 2018, section 5.1, as in MimicKit.)"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.rotations import angle_between
from pretrain.characters.skeleton import Skeleton
from pretrain.sim.features import key_offsets
from pretrain.tracking.config import DeepMimicConfig
from pretrain.tracking.pose import Pose, joint_angles_between

ROTATION_SHARE = 0.1  # m^2 / rad^2, of the root's rotation beside its position


@dataclass(frozen=True)
class JointWeights:
    """Weights of the joints, and of the hinges, which have that of their joint."""

    joint: Tensor  # (joints,)
    hinge: Tensor  # (J,)


def joint_weights(cfg: DeepMimicConfig, skeleton: Skeleton) -> JointWeights:
    """`joint_err_w`. ValueError if it has no number for each of `skeleton.joints`."""
    bodies = [joint.body for joint in skeleton.joints]
    if len(cfg.joint_err_w) != len(bodies):
        raise ValueError(
            f"deepmimic.joint_err_w has {len(cfg.joint_err_w)} numbers; expected {len(bodies)}, "
            f"for {', '.join(bodies)}"
        )
    weights = torch.tensor(cfg.joint_err_w)
    counts = torch.tensor([len(joint.axes) for joint in skeleton.joints])
    return JointWeights(weights, weights.repeat_interleave(counts))


def deepmimic_reward(
    pose: Pose, reference: Pose, cfg: DeepMimicConfig, skeleton: Skeleton, weights: JointWeights
) -> Tensor:
    """In 0 to 1 with MimicKit's weights, (N,).

    Unlike in MimicKit, key bodies are compared each in its own heading frame, and of a ball joint
    the rates of its three hinges, not its angular velocity."""
    state = pose.state
    other = reference.state
    angles = joint_angles_between(skeleton, state.joint_pos, other.joint_pos)
    turn = angle_between(state.root_rot, other.root_rot)
    keys = key_offsets(skeleton, pose.frame - reference.frame).flatten(-2)
    root_pose = _square(state.root_pos - other.root_pos) + ROTATION_SHARE * turn.square()
    root_vel = _square(state.root_vel - other.root_vel)
    root_spin = _square(state.root_ang_vel - other.root_ang_vel)
    rates = (state.joint_vel - other.joint_vel).square()
    terms = (
        (cfg.reward_pose_w, cfg.reward_pose_scale, (weights.joint * angles.square()).sum(-1)),
        (cfg.reward_vel_w, cfg.reward_vel_scale, (weights.hinge * rates).sum(-1)),
        (cfg.reward_root_pose_w, cfg.reward_root_pose_scale, root_pose),
        (cfg.reward_root_vel_w, cfg.reward_root_vel_scale, root_vel + ROTATION_SHARE * root_spin),
        (cfg.reward_key_pos_w, cfg.reward_key_pos_scale, _square(keys)),
    )
    return torch.stack([weight * (-scale * error).exp() for weight, scale, error in terms]).sum(0)


def _square(x: Tensor) -> Tensor:
    return x.square().sum(-1)
