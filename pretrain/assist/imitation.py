"""Imitation of the reference motion: a tracking reward, a cloning loss and a gradient on poses.

The style reward alone is too weak a signal for motions as hard as a flip. (The reward is the
tracking reward of DeepMimic, Peng et al. 2018, eq. 5, in style features.) While a world is
assisted, the policy clones the actions that aim at the clip's next pose, in the states that it
reaches itself. (DAgger, Ross et al. 2011; beside a policy gradient, as in Schmitt et al. 2018,
"Kickstarting deep reinforcement learning".) As the assistance decays, there is more to do than to
follow the clip, and the cloning loss ends.

What is left then is a matter of a few degrees, of which a policy gradient says next to nothing:
gradients of two rollouts of 8,192 samples agree by 0.02 (cosine; docs/training.md). But a joint
that is short of its pose is brought there by aiming further, whatever else happens: of the
derivative of poses by actions, the sign of the diagonal is known. (A model of the plant as in
Fussell, Bergamin and Holden 2021, "SuperTrack", but the simplest there is.)
"""

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
# Strength of the assistance at which the cloning loss is 0: from here on balance is to be learned.
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
    """`surrogate`, and the squared distance from mean actions to the reference's, for each world by
    its assistance: `weight` at strength 1, none below CLONING_OFF_BELOW, and `switch_weight` times
    the strength of the assistance in a switch."""

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
    """`surrogate`, and a gradient towards actions that aim further where joints are short of the
    reference pose, and less far where they are beyond it; the smaller the tracking error over
    `scale`, the steeper. `legs` (J,) bool count LEG_SHARE. Without `assisted`,
    worlds whose clip is still assisted do not count."""
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
