"""Imitation of the reference motion: a tracking reward, a cloning loss and a gradient on poses.

The style reward alone is too weak a signal for motions as hard as a flip. (The reward is the
tracking reward of DeepMimic, Peng et al. 2018, eq. 5, in style features.) While a world is
assisted, the policy clones the actions that target the clip's next pose, in states that it visits
itself. (DAgger, Ross et al. 2011; beside a policy gradient, as in Schmitt et al. 2018,
"Kickstarting deep reinforcement learning".) As the assistance decays, the policy must also balance,
and the cloning loss ends.

The remaining error is a few degrees, for which a policy gradient has almost no signal: gradients of
two rollouts of 8,192 samples have a cosine of 0.02 (docs/training.md). But a larger target always
moves a joint further: in the Jacobian of poses with respect to actions, the sign of the diagonal is
known. (A model of the plant, as in Fussell, Bergamin and Holden 2021, "SuperTrack", but
minimal.)"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.iteration import Reward
from pretrain.rl.ppo import Metrics, Surrogate
from pretrain.rl.rollout import Batch, Rollout

# read by `with_cloning_loss`
FOR_CLONING = ("reference_action", "assist_strength", "switch_strength")
# read by `with_pose_gradient`
FOR_POSE_GRADIENT = ("pose_error", "tracking_error", "assist_strength")
LEG_SHARE = 0.25  # weight of a leg's pose over that of an arm's: legs are needed for balance
# Strength of the assistance at which the cloning loss is 0: below it, balance is learned.
CLONING_OFF_BELOW = 0.3


def imitation_reward(scale: float, velocity_weight: float = 0.0) -> Reward:
    """exp(-tracking error / scale - velocity_weight * velocity excess); see
    `ReferenceTracker.tracking_error` and `VelocityTracker.excess`."""

    def reward(rollout: Rollout) -> Tensor:
        extras = rollout.extras
        error = extras["tracking_error"] / scale
        return (-error - velocity_weight * extras["velocity_excess"]).exp()

    return reward


def with_cloning_loss(surrogate: Surrogate, weight: float, switch_weight: float) -> Surrogate:
    """`surrogate` plus the squared distance from mean actions to the reference's, weighted by the
    assistance: `weight` at strength 1, 0 below CLONING_OFF_BELOW, and `switch_weight` times the
    strength of the switch assistance."""

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        share = (batch["assist_strength"] - CLONING_OFF_BELOW).clamp_min(0) / (
            1 - CLONING_OFF_BELOW
        )
        distance = (mean - batch["reference_action"]).square().sum(-1)
        off = (share * distance).mean()
        switch_off = (batch["switch_strength"] * distance).mean()
        total = total + weight * off + switch_weight * switch_off
        return total, {**metrics, "cloning_loss": off, "switch_cloning_loss": switch_off}

    return loss


def with_pose_gradient(
    surrogate: Surrogate, legs: Tensor, weight: float, scale: float, *, assisted: bool = True
) -> Surrogate:
    """`surrogate` plus a gradient that moves mean actions in the direction of the joints'
    `pose_error`, weighted by exp(-tracking error / `scale`), and by LEG_SHARE for `legs` (J,) bool.
    Without `assisted`, worlds whose clip is still assisted are left out."""
    share = torch.where(legs, LEG_SHARE, 1.0)

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        near = (-batch["tracking_error"] / scale).exp()
        if not assisted:
            near = near * (batch["assist_strength"] == 0)
        error = batch["pose_error"]
        slope = (near * (share * mean * error).sum(-1)).mean()
        return total - weight * slope, {**metrics, "pose_error": error.square().mean().sqrt()}

    return loss
