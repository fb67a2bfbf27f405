"""A reward for getting up: by height and uprightness in clips that rise, and 1 in all others."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.iteration import Reward
from pretrain.rl.rollout import Rollout
from pretrain.sim.ground import Ground


def getup_reward(ground: Ground) -> Reward:
    """Root height over `ground.standing`, at most 1, times (1 + cosine of its lean) / 2.

    The style reward alone is satisfied by lying as in the clip's first frames, and height alone by
    a root above the hands.
    """

    def reward(rollout: Rollout) -> Tensor:
        # `proprioception`: root height, x axis of the root (3), its z axis (3), ...
        obs = rollout.next_obs["obs"]
        height = (obs[..., 0] / ground.standing).clamp(0, 1)
        upright = 0.5 + 0.5 * obs[..., 6]
        return torch.where(ground.rising[rollout.extras["z_clip"]], height * upright, 1.0)

    return reward
