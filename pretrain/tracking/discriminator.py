"""The adversarial differential discriminator: tells the difference between a character and its
reference from no difference. (ADD, Zhang et al. 2025, "Physics-based motion imitation with
adversarial differential discriminators", arXiv 2505.04961.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from pretrain.ase.discriminator import adversarial_reward, logit_and_slope, measure_accuracy
from pretrain.rl.adam import Adam
from pretrain.rl.iteration import Reward
from pretrain.rl.learner import Learner
from pretrain.rl.nets import mlp
from pretrain.rl.ppo import Loss, Metrics
from pretrain.rl.replay import Replay
from pretrain.rl.rollout import Batch, Rollout
from pretrain.tracking.config import AddConfig

MIN_SIZE = 1e-4  # of a feature's mean absolute difference


class DifferenceDiscriminator(nn.Module):
    """Logit of a difference being none, (..., K) -> (...). Each feature is divided by its mean
    absolute value, which is tracked by `update`."""

    size: Tensor
    count: Tensor

    def __init__(self, width: int, hidden: tuple[int, ...], rng: Generator):
        super().__init__()
        self.register_buffer("size", torch.ones(width))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.body = mlp([width, *hidden, 1], rng=rng)

    def forward(self, difference: Tensor) -> Tensor:
        return self.logit(self.norm(difference))

    def norm(self, difference: Tensor) -> Tensor:
        return difference / self.size.clamp_min(MIN_SIZE)

    def logit(self, normalized: Tensor) -> Tensor:
        return self.body(normalized).squeeze(-1)

    @torch.no_grad()
    def update(self, differences: Tensor) -> None:
        """Add differences (n, K) to the running mean of absolute values."""
        self.count += len(differences)
        share = float(len(differences) / self.count)
        self.size.lerp_(differences.abs().mean(0), share)


def difference_reward(net: DifferenceDiscriminator, scale: float) -> Reward:
    """`adversarial_reward` of the difference from the reference; 0 where the episode terminates, as
    after a reset of a broken world the difference is small."""

    def reward(rollout: Rollout) -> Tensor:
        with torch.no_grad():
            logit = net(rollout.extras["difference"])
        return ~rollout.terminated * adversarial_reward(logit, scale)

    return reward


def make_difference_learner(
    add: AddConfig, net: DifferenceDiscriminator, replay: Replay
) -> Learner:
    return Learner(
        "disc",
        ("difference",),
        difference_loss(net, replay, add),
        Adam(net.parameters(), add.lr),
        epochs=1,
        minibatch=add.minibatch,
        max_rows=add.rows,
        observe=observe_differences(net, replay, add),
    )


def observe_differences(
    net: DifferenceDiscriminator, replay: Replay, add: AddConfig
) -> Callable[[Batch], None]:
    """Adds a minibatch's differences to the normalizer of `net`, and some of them to `replay`."""

    def observe(batch: Batch) -> None:
        differences = batch["difference"]
        net.update(differences)
        num_kept = max(1, len(differences) * add.disc_replay_samples // add.rows)
        replay.add(difference=differences[:num_kept])

    return observe


def difference_loss(net: DifferenceDiscriminator, replay: Replay, add: AddConfig) -> Loss:
    """Binary cross-entropy, one difference of 0 against the batch's and as many replayed ones, with
    a gradient penalty on both sides."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        fresh = batch["difference"]
        seen = torch.cat([fresh, replay.sample(len(fresh), rng)["difference"]])
        agent_logit, agent_slope = logit_and_slope(net.logit, net.norm(seen))
        none_logit, none_slope = logit_and_slope(net.logit, torch.zeros_like(fresh[:1]))
        cross_entropy = 0.5 * (softplus(agent_logit).mean() + softplus(-none_logit).mean())
        penalty = 0.5 * (agent_slope + none_slope)
        last = cast(nn.Linear, net.body[-1]).weight.square().sum()
        return cross_entropy + add.disc_grad_penalty * penalty + add.disc_logit_reg * last, {
            "disc_accuracy": measure_accuracy(agent_logit, none_logit),
            "disc_agent_logit": agent_logit.mean(),
            "disc_demo_logit": none_logit.mean(),
            "disc_grad_penalty": penalty,
        }

    return loss
