"""The style reward of a decision, from the published graph. (nv-tlabs/ASE.)"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.iteration import Reward
from pretrain.rl.rollout import Rollout
from skills_store.runtime.library import SkillLibrary


def style_reward(skills: SkillLibrary, scale: float) -> Reward:
    """The style reward of a decision's last window, 0 where the decision ends in a fall. A window
    per control step would cost more than the simulation."""

    def reward(rollout: Rollout) -> Tensor:
        states = rollout.extras["states"]
        probability = torch.from_numpy(skills.style(states.flatten(0, 1).numpy()))
        style = reward_probability(probability, scale).view(rollout.terminated.shape)
        return ~rollout.terminated * style

    return reward


def reward_probability(probability: Tensor, scale: float) -> Tensor:
    """-log(max(1 - p, 1e-4)) * scale, at most 9.2 * scale: `style_reward` of pretraining, from the
    published graph's probability (N,) in place of the logit."""
    return -scale * (1 - probability).clamp_min(1e-4).log()
