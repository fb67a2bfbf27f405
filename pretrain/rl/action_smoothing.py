"""Action smoothing: a loss that draws each mean action towards the average of its neighbors in
time.

PPO's objective does not penalize jitter, which roughens motions and lets feet slide. (The temporal
term of CAPS, Mysore et al. 2021, "Regularizing action policies for smooth control", is the first
difference, which also penalizes a steady change; this is the second.)"""

from __future__ import annotations

import torch

from pretrain.rl.mean_action_loss import ActionTarget
from pretrain.rl.rollout import Batch, Rollout

NEIGHBORS = ActionTarget(action="neighbor_mean", share="has_neighbors", metric="roughness")


def average_neighbors(rollout: Rollout) -> Batch:
    """`neighbor_mean` (T, N, A), the average of the mean actions one step before and after, and
    `has_neighbors` (T, N), 1 where both belong to the same segment of an episode, else 0. With
    `own_return`, a segment ends at a change of latent."""
    mean = rollout.mean
    ends = rollout.terminated | rollout.truncated
    neighbor_mean = torch.zeros_like(mean)
    has_neighbors = torch.zeros_like(rollout.reward)
    neighbor_mean[1:-1] = (mean[:-2] + mean[2:]) / 2
    has_neighbors[1:-1] = (~ends[:-2] & ~ends[1:-1]).float()
    return {"neighbor_mean": neighbor_mean, "has_neighbors": has_neighbors}
