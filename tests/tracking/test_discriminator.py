"""The differential discriminator: its normalizer, its loss and its reward."""

from __future__ import annotations

import pytest
import torch

from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Rollout
from pretrain.tracking.config import AddConfig
from pretrain.tracking.discriminator import (
    DifferenceDiscriminator,
    difference_reward,
    make_difference_learner,
)

WIDTH = 4
SETTINGS = AddConfig(hidden=(16,), lr=1e-2, rows=256, minibatch=64, disc_replay_samples=16)


@pytest.fixture
def net(rng: torch.Generator) -> DifferenceDiscriminator:
    return DifferenceDiscriminator(WIDTH, SETTINGS.hidden, rng)


def differences(rng: torch.Generator) -> torch.Tensor:
    """Of an untrained character: the features differ in size by a factor of 100."""
    return torch.tensor([1.0, 0.1, 10.0, 1.0]) * torch.randn(256, WIDTH, generator=rng)


def rewards(
    net: DifferenceDiscriminator, rows: torch.Tensor, terminated: torch.Tensor | None = None
) -> torch.Tensor:
    """Of one step of each world; by default none of them terminates."""
    never = torch.zeros(1, len(rows), dtype=torch.bool)
    zero = torch.zeros(1, len(rows))
    rollout = Rollout(
        obs={},
        next_obs={},
        mean=zero,
        action=zero,
        logp=zero,
        reward=zero,
        terminated=never if terminated is None else terminated[None],
        truncated=never,
        resets=never,
        extras={"difference": rows[None]},
    )
    return difference_reward(net, 2.0)(rollout)[0]


def test_size_of_a_feature_is_the_mean_of_its_absolute_values(
    net: DifferenceDiscriminator, rng: torch.Generator
) -> None:
    parts = [differences(rng)[:count] for count in (10, 100, 37)]
    for part in parts:
        net.update(part)
    torch.testing.assert_close(net.size, torch.cat(parts).abs().mean(0))


def test_the_smaller_the_difference_the_larger_the_reward(
    net: DifferenceDiscriminator, rng: torch.Generator
) -> None:
    replay = Replay(SETTINGS.disc_buffer_size, difference=torch.zeros(WIDTH))
    learner = make_difference_learner(SETTINGS, net, replay)
    for _ in range(40):
        learner.fit({"difference": differences(rng)}, rng)
    far = differences(rng)
    scores = [rewards(net, share * far).mean() for share in (0.0, 0.1, 0.5, 1.0)]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 1.2 * scores[-1]


def test_reward_is_bounded(net: DifferenceDiscriminator) -> None:
    last = net.body[-1]
    assert isinstance(last, torch.nn.Linear)
    torch.nn.init.constant_(last.bias, 1e6)
    assert rewards(net, torch.zeros(3, WIDTH)).tolist() == pytest.approx([2 * 9.21] * 3)


def test_a_terminated_step_has_no_reward(net: DifferenceDiscriminator) -> None:
    terminated = torch.tensor([True, False])
    assert (rewards(net, torch.zeros(2, WIDTH), terminated) > 0).tolist() == [False, True]


def test_each_rollout_adds_its_share_to_the_replay_buffer(
    net: DifferenceDiscriminator, rng: torch.Generator
) -> None:
    replay = Replay(SETTINGS.disc_buffer_size, difference=torch.zeros(WIDTH))
    learner = make_difference_learner(SETTINGS, net, replay)
    learner.fit({"difference": differences(rng)}, rng)
    assert replay.filled == SETTINGS.disc_replay_samples
