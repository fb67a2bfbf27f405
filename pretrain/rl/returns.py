"""Returns from rewards. Knows nothing of bodies, skills or networks."""

from __future__ import annotations

import torch
from torch import Tensor


def gae(
    reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, truncated: Tensor, gamma: float, lam: float
) -> Tensor:
    """Generalised advantage estimates, all (T, N). (Schulman et al. 2016, eq. 16.)

    A termination is worth nothing after it; a truncation, and the horizon's end, are worth `next_value`. Neither lets
    a later episode's advantages through.
    """
    delta = reward + gamma * next_value * ~terminated - value
    carry = gamma * lam * ~(terminated | truncated)
    advantage = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + carry[t] * running
        advantage[t] = running
    return advantage
