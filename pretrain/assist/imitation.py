"""Imitation of the reference motion: an imitation reward, a cloning loss and a gradient on poses.

The style reward alone is too weak a signal for motions as hard as a flip. (The reward is like the
tracking reward of DeepMimic, Peng et al. 2018, eq. 5, but of one error over all style features, not
squared.) While the switch assistance acts, after a change of skill, the policy clones the actions
that target the new clip's next pose, in states that it visits itself. (DAgger, Ross et al. 2011;
beside a policy gradient, as in Schmitt et al. 2018, "Kickstarting deep reinforcement learning".)

The remaining error is a few degrees, for which a policy gradient has almost no signal: gradients of
two rollouts of 8,192 samples have a cosine of 0.02. But a larger target always moves a joint
further: in the Jacobian of poses with respect to actions, the sign of the diagonal is known. (A
model of the plant, as in Fussell, Bergamin and Holden 2021, "SuperTrack", but minimal.)"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.mean_action_loss import ActionTarget
from pretrain.rl.ppo import Metrics, Surrogate
from pretrain.rl.rollout import Batch, Rollout

# the reference's actions, by the strength of the switch assistance
CLONING = ActionTarget(
    action="reference_action", share="switch_strength", metric="switch_cloning_loss"
)
# read by `with_pose_gradient`
FOR_POSE_GRADIENT = ("pose_error", "tracking_error", "assist_strength")
# Of the tracking error, in units of its limit. A reward linear in the error was no better.
ERROR_SCALE = 0.42
CLONING_WEIGHT = 4.0  # of the cloning loss in switches
LEG_SHARE = 0.25  # weight of a leg's pose over that of an arm's: legs are needed for balance


def imitation_reward(rollout: Rollout) -> Tensor:
    """exp(-tracking error / ERROR_SCALE - velocity excess), (T, N): the error in units of its limit
    (`TrackingTermination.share_of_limit`), the velocity in margins (`VelocityTracker.excess`)."""
    extras = rollout.extras
    error = extras["tracking_error"] / ERROR_SCALE
    return (-error - extras["velocity_excess"]).exp()


def with_pose_gradient(surrogate: Surrogate, legs: Tensor, weight: float) -> Surrogate:
    """`surrogate` plus a gradient that moves mean actions in the direction of the joints'
    `pose_error`, weighted by exp(-tracking error / ERROR_SCALE), and by LEG_SHARE for `legs` (J,)
    bool. Worlds whose clip is still assisted are left out."""
    share = torch.where(legs, LEG_SHARE, 1.0)

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        near = (-batch["tracking_error"] / ERROR_SCALE).exp() * (batch["assist_strength"] == 0)
        error = batch["pose_error"]
        slope = (near * (share * mean * error).sum(-1)).mean()
        return total - weight * slope, {**metrics, "pose_error": error.square().mean().sqrt()}

    return loss
