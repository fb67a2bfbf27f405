"""Keeps the skills of a published library while clips are added to it.

PPO changes the policy for added clips also in the states of the others, whose skills deteriorate.
So a loss draws the mean action to that of the published policy, the parent, where a world follows
one of its clips (rl/mean_action_loss.py). (As in kickstarting, Schmitt et al. 2018, which has the
cross-entropy in place of the squared distance of the means.)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.rl.mean_action_loss import ActionTarget
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.rollout import Batch, Rollout

PARENT = ActionTarget(action="parent_mean", share="has_parent", metric="parent_distance")


@dataclass(frozen=True)
class ParentSkills:
    """The policy of a published library, and which of the present clips it has learned."""

    policy: GaussianPolicy
    is_learned: Tensor  # (C,) bool


def read_parent_actions(parent: ParentSkills) -> Callable[[Rollout], Batch]:
    """A function of a rollout to `parent_mean` (T, N, A), the parent's mean action, and
    `has_parent` (T, N), 1 where the world is within the tracking limit of a clip that the parent
    has learned, else 0, as there `parent_mean`."""

    def read(rollout: Rollout) -> Batch:
        # elsewhere the parent may fail, as in the states of added clips
        is_near = rollout.extras["tracking_error"] < 1
        has_parent = parent.is_learned[rollout.extras["z_clip"]] & is_near
        parent_mean = torch.zeros_like(rollout.mean)
        obs = {name: rollout.obs[name][has_parent] for name in parent.policy.inputs.names}
        with torch.no_grad():
            parent_mean[has_parent] = parent.policy(obs)
        return {"parent_mean": parent_mean, "has_parent": has_parent.float()}

    return read
