"""Being where the clip is at this moment. (The tracking reward of DeepMimic, Peng et al. 2018, eq. 5, in style features.)

Style says whether a motion is like the clip's; for a flip that is learned from a hundred falls, it says too little.
"""

from __future__ import annotations

from torch import Tensor

from pretrain.rl.loop import Reward
from pretrain.rl.rollout import Rollout


def imitation_reward(scale: float) -> Reward:
    """exp(-distance / scale), of each window to the one that its world's clock (pretrain/sim/guide.py) points at."""

    def reward(rollout: Rollout) -> Tensor:
        return (-rollout.extras["apart"] / scale).exp()

    return reward
