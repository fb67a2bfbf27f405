"""Being where the clip is at this moment, and aiming where it goes next.

Style says whether a motion is like the clip's; for a flip that is learned from a hundred falls, it says too little. (The
reward is the tracking reward of DeepMimic, Peng et al. 2018, eq. 5, in style features.) And whoever is held need not find
out how to move: the clip's own next pose brings it there, as a teacher that is asked wherever the policy has got to. (DAgger,
Ross et al. 2011; beside a policy gradient, as in Schmitt et al. 2018, "Kickstarting deep reinforcement learning".) As the
hand lets go, there is more to do than to follow the clip, and the teacher falls silent.

What is left then is a matter of a few degrees, of which a policy gradient says next to nothing: gradients of two rollouts of
8,192 samples agree by 0.02 (cosine; docs/training-log.md). But a joint that is short of its pose is brought there by aiming
further, whatever else goes on: of the derivative of pose by aim, the sign of the diagonal is known. (A model of the plant as
in Fussell, Bergamin and Holden 2021, "SuperTrack", but for the simplest there is.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.loop import Reward
from pretrain.rl.ppo import Metrics, Surrogate
from pretrain.rl.rollout import Batch, Rollout

FOR_CLONING = ("reference_action", "assist_strength")  # what `with_cloning_loss` reads of a batch
FOR_POSE_GRADIENT = ("pose_error", "tracking_error")  # what `with_pose_gradient` reads
LEGS = 0.25  # what a leg's pose counts of an arm's: legs are for balance, too
CLONING_OFF_BELOW = (
    0.3  # strength of the hand at which the teacher has nothing more to say: balance is to be learned from here on
)


def imitation_reward(scale: float) -> Reward:
    """exp(-tracking error / scale), see `ReferenceTracker.tracking_error`."""

    def reward(rollout: Rollout) -> Tensor:
        return (-rollout.extras["tracking_error"] / scale).exp()

    return reward


def with_cloning_loss(surrogate: Surrogate, weight: float) -> Surrogate:
    """`surrogate`, and the squared distance from mean actions to those that follow the clip, for each as it is led: all of it
    held firmly, none at CLONING_OFF_BELOW."""

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        taught = (batch["assist_strength"] - CLONING_OFF_BELOW).clamp_min(0) / (1 - CLONING_OFF_BELOW)
        off = (taught * (mean - batch["reference_action"]).square().sum(-1)).mean()
        return total + weight * off, {**metrics, "off_aim": off}

    return loss


def with_pose_gradient(surrogate: Surrogate, legs: Tensor, weight: float, scale: float) -> Surrogate:
    """`surrogate`, and a slope towards aims further on where joints are short of the clip's pose and less far where they are
    beyond it; the nearer a world is to its moment (`imitation_reward`), the steeper. `legs` (J,) bool are less steep."""
    share = torch.where(legs, LEGS, 1.0)

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        near, error = (-batch["tracking_error"] / scale).exp(), batch["pose_error"]
        slope = (near * (share * mean * error).sum(-1)).mean()
        return total - weight * slope, {**metrics, "pose_error": error.square().mean().sqrt()}

    return loss
