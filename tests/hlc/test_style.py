"""The style reward of decisions, by the published graph."""

from __future__ import annotations

import torch

from hlc.parent import Parent
from hlc.style import reward_probability, style_reward
from pretrain.rl.rollout import Rollout
from tests.hlc.bodies import clip_states


def make_rollout(states: torch.Tensor, terminated: torch.Tensor) -> Rollout:
    """Decisions (T, N) that end in `states` (T, N, W, S)."""
    none = torch.zeros(terminated.shape)
    return Rollout(
        obs={},
        next_obs={},
        mean=none,
        action=none,
        logp=none,
        reward=none,
        terminated=terminated,
        truncated=~terminated,
        resets=terminated,
        extras={"states": states},
    )


def test_the_reward_is_that_of_each_window_and_0_after_a_fall(parent: Parent) -> None:
    length = parent.skills.window_length
    states = clip_states(parent, 2 * 3 * length).flatten()
    windows = states.view(2, 3, length, -1)
    terminated = torch.tensor([[False, True, False], [False, False, True]])
    rewards = style_reward(parent.skills, 2.0)(make_rollout(windows, terminated))
    for step in range(2):
        likeness = torch.from_numpy(parent.skills.style(windows[step].numpy()))
        expected = ~terminated[step] * reward_probability(likeness, 2.0)
        torch.testing.assert_close(rewards[step], expected)


def test_reward_of_a_probability_by_hand() -> None:
    rewards = reward_probability(torch.tensor([0.0, 0.5, 1.0]), 2.0)
    torch.testing.assert_close(rewards, torch.tensor([0.0, 1.386294, 18.420681]))
