"""Returns from rewards. Independent of bodies, skills and networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

# One value for the sum of all rewards, or one for each of R rewards; "normalized": advantages of
# each are also divided by the std of its returns.
Critics = Literal["joint", "separate", "normalized"]


@dataclass(frozen=True)
class Discount:
    gamma: float  # per step
    lam: float  # of GAE


def gae(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    *,
    discount: Discount,
) -> Tensor:
    """Generalized advantage estimates of R rewards, (T, N, R), as `reward`, `value` and
    `next_value`; `terminated` and `truncated` are (T, N). (Schulman et al. 2016, eq. 16.)

    The return after a termination is 0; after a truncation, and at the end of the horizon, it is
    `next_value`. Advantages cross neither a termination nor a truncation."""
    delta = reward + discount.gamma * next_value * ~terminated[..., None] - value
    carry = discount.gamma * discount.lam * ~(terminated | truncated)[..., None]
    advantage = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + carry[t] * running
        advantage[t] = running
    return advantage


def combine_advantages(advantage: Tensor, weight: Tensor, std: Tensor | None = None) -> Tensor:
    """The policy's advantage (n,) from those of R unweighted rewards, (n, R): their weighted sum,
    with zero mean and unit std, within +-4.

    `weight` is (R,). With `std` (R,), of each reward's returns, a reward counts by its weight and
    not by its size."""
    total = (advantage * (weight if std is None else weight / std)).sum(-1)
    return ((total - total.mean()) / total.std().clamp_min(1e-6)).clamp(-4, 4)
