"""Getting up: who is to rise is paid for how high it has come, and all others as if they stood."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.loop import Reward
from pretrain.rl.rollout import Rollout
from pretrain.sim.ground import Ground


def rise_reward(ground: Ground) -> Reward:
    """Root height over the usual one, at most 1. Style alone is content with lying as a clip lies in its first frames."""

    def reward(rollout: Rollout) -> Tensor:
        height = rollout.next_obs["obs"][..., 0]  # of the root: the first that `proprioception` says
        return torch.where(ground.rising[rollout.extras["z_clip"]], (height / ground.standing).clamp(0, 1), 1.0)

    return reward
