"""Returns from rewards. Independent of bodies, skills and networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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
    """Generalized advantage estimates, all (T, N). (Schulman et al. 2016, eq. 16.)

    The return after a termination is 0; after a truncation, and at the end of the horizon, it is
    `next_value`. Advantages cross neither a termination nor a truncation."""
    delta = reward + discount.gamma * next_value * ~terminated - value
    carry = discount.gamma * discount.lam * ~(terminated | truncated)
    advantage = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + carry[t] * running
        advantage[t] = running
    return advantage
