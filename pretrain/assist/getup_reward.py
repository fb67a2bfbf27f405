"""A reward for getting up: by height and uprightness in clips that rise, and 1 in all others."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.loop import Reward
from pretrain.rl.rollout import Rollout
from pretrain.sim.ground import Ground


def getup_reward(ground: Ground) -> Reward:
    """Root height over the usual one, at most 1, times (1 + cosine of its lean) / 2.

    Style alone is content with lying as a clip lies in its first frames, and height alone with a
    root above the hands.
    """

    def reward(rollout: Rollout) -> Tensor:
        seen = rollout.next_obs["obs"]  # as `proprioception` has it: root height, its x axis, its z axis ...
        height = (seen[..., 0] / ground.standing).clamp(0, 1)
        upright = 0.5 + 0.5 * seen[..., 6]
        return torch.where(ground.rising[rollout.extras["z_clip"]], height * upright, 1.0)

    return reward
