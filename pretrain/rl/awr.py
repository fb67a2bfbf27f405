"""Advantage-weighted regression as a loss. (Peng et al. 2019, algorithm 1, without a buffer of
earlier rollouts, as in MimicKit.)"""

from __future__ import annotations

from torch import Tensor

from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.ppo import Metrics, Surrogate, measure_bound_excess, measure_kl
from pretrain.rl.rollout import Batch


def weighted_regression(
    policy: GaussianPolicy,
    temperature: float,
    max_weight: float,
    action_bound: float,
    action_bound_weight: float,
) -> Surrogate:
    """Minus the log-probability of each action, weighted by exp(advantage / temperature), at most
    `max_weight`, plus the penalty on mean actions (n, A) beyond +-action_bound.

    Advantages have unit std and are within +-4 (`combine_advantages`). Every action counts
    towards the mean, so the noise must be independent of the state: with AR(1) noise, of which the
    state depends on the part before, the policy follows its own noise and gets worse."""

    def surrogate(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        logp = policy.logp(mean, batch["action"])
        weight = (batch["advantage"] / temperature).exp().clamp_max(max_weight)
        beyond = measure_bound_excess(mean, action_bound)
        metrics = {
            "kl": measure_kl(logp - batch["logp"]),
            "advantage_weight": weight.mean(),
            "action_bound": beyond,
        }
        return -(weight * logp).mean() + action_bound_weight * beyond, metrics

    return surrogate
