"""Proximal policy optimization as losses over a batch. (Schulman et al. 2017, eq. 7.)"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.rollout import Batch

Metrics = dict[str, Tensor]
Loss = Callable[[Batch, Generator], tuple[Tensor, Metrics]]
FOR_POLICY = ("action", "logp", "advantage")  # read by the losses besides the nets' inputs
FOR_VALUE = ("return",)


Surrogate = Callable[[Tensor, Batch], tuple[Tensor, Metrics]]


def clipped_surrogate(
    policy: GaussianPolicy, clip: float, action_bound: float, action_bound_weight: float
) -> Surrogate:
    """The clipped surrogate of mean actions (n, A), plus a penalty on means beyond
    +-action_bound."""

    def surrogate(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        log_ratio = policy.logp(mean, batch["action"]) - batch["logp"]
        ratio = log_ratio.exp()
        advantage = batch["advantage"]
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        beyond = measure_bound_excess(mean, action_bound)
        metrics = {
            "kl": measure_kl(log_ratio),
            "clip_fraction": ((ratio - 1).abs() > clip).float().mean(),
            "action_bound": beyond,
        }
        return -gain.mean() + action_bound_weight * beyond, metrics

    return surrogate


def measure_bound_excess(mean: Tensor, action_bound: float) -> Tensor:
    """Squared distance of mean actions (n, A) beyond +-action_bound, averaged over rows."""
    return (mean.abs() - action_bound).clamp_min(0).square().sum(-1).mean()


def measure_kl(log_ratio: Tensor) -> Tensor:
    """KL divergence from the policy that acted, given log-probability ratios (n,). (Schulman's
    estimator k3.)"""
    return (log_ratio.exp() - 1 - log_ratio).mean()


def policy_loss(policy: GaussianPolicy, surrogate: Surrogate) -> Loss:
    """`surrogate` of the policy's mean actions."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        return surrogate(policy(batch), batch)

    return loss


def value_loss(value: Value) -> Loss:
    """Squared error to the normalized returns (n, R)."""

    def loss(batch: Batch, rng: Generator) -> tuple[Tensor, Metrics]:
        error = (value(batch) - batch["return"]).square().mean()
        variance = batch["return"].var(0).mean()
        return error, {"unexplained": error / variance.clamp_min(1e-6)}

    return loss
