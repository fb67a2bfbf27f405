"""Measures of motion, as pure functions of tensors. What they say of a skill library is in `pretrain/evaluate.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def frechet(a: Tensor, b: Tensor) -> float:
    """Squared Frechet distance between Gaussians fitted to rows a (n, F) and b (m, F).

    |mu_a - mu_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2). (Dowson and Landau 1982; the FID of Heusel et al. 2017.)
    """
    a, b = a.double(), b.double()
    mean = (a.mean(0) - b.mean(0)).square().sum()
    cov_a, cov_b = a.T.cov(), b.T.cov()
    root = _root(cov_a)
    cross = torch.linalg.eigvalsh(root @ cov_b @ root).clamp_min(0).sqrt().sum()
    return float(mean + cov_a.trace() + cov_b.trace() - 2 * cross)


def _root(symmetric: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(symmetric)
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T


def aligned_error(cost: Tensor) -> Tensor:
    """Mean cost along the cheapest monotone path from corner to corner of cost matrices (..., T, U): (...).

    Dynamic time warping. (Sakoe and Chiba 1978, symmetric steps of one; the path's length is the divisor.)
    """
    prices = cost.reshape(-1, *cost.shape[-2:]).numpy().transpose(1, 2, 0)  # (T, U, P)
    nowhere = np.stack([np.full(prices.shape[2], np.inf), np.zeros(prices.shape[2])])  # (total, steps) of no path
    above = [np.zeros_like(nowhere)] + [nowhere] * prices.shape[1]  # of the best path to each column
    for row in prices:
        here = [nowhere]
        for u, price in enumerate(row):
            before = np.stack([above[u], above[u + 1], here[u]])  # (3, 2, P)
            best = np.take_along_axis(before, before[:, :1].argmin(0)[None], 0)[0]
            here.append(best + np.stack([price, np.ones_like(price)]))
        above = here
    total, steps = above[-1]
    return torch.from_numpy(total / steps).view(cost.shape[:-2])


def mean(x: Tensor) -> float | None:
    """None of nothing: a card holds no NaN."""
    return float(x.mean()) if len(x) else None


def interval(x: Tensor) -> dict[str, Any]:
    """n, mean and the 95 % interval of the mean of x (n,), by the normal approximation; None where there is nothing."""
    middle = mean(x)
    if middle is None:
        return {"n": 0, "mean": None, "interval": None}
    half = 1.96 * float(x.std(correction=min(1, len(x) - 1))) / len(x) ** 0.5
    return {"n": len(x), "mean": middle, "interval": [middle - half, middle + half]}


def share_interval(x: Tensor) -> dict[str, Any]:
    """n, mean and the 95 % interval of the share of ones in x (n,), which stays within 0 and 1 and has a width at its ends.

    (Wilson 1927, "Probable inference, the law of succession, and statistical inference".)
    """
    n, share = len(x), mean(x)
    if share is None:
        return interval(x)
    middle, half = share + 1.96**2 / (2 * n), 1.96 * (share * (1 - share) / n + 1.96**2 / (4 * n**2)) ** 0.5
    return {"n": n, "mean": share, "interval": [(middle + sign * half) / (1 + 1.96**2 / n) for sign in (-1, 1)]}


def jerk(joint_pos: Tensor, rate: float) -> Tensor:
    """Mean absolute third derivative of joint angles (T, ..., J) rad at `rate` Hz: (...) rad/s^3."""
    third = joint_pos[3:] - 3 * joint_pos[2:-1] + 3 * joint_pos[1:-2] - joint_pos[:-3]
    return (third * rate**3).abs().mean(-1).mean(0)


def pairs(count: int) -> tuple[Tensor, Tensor]:
    """Indices of the one and of the other of every two of `count`: (P,) each, P = count (count - 1) / 2."""
    one, other = torch.triu_indices(count, count, 1)
    return one, other


def pair_distances(rollouts: Tensor) -> Tensor:
    """Between every two (`pairs`) of K rollouts (..., K, T, F), best aligned in time: (..., P).

    Frame by frame, two walks out of step would be as far apart as a walk and a turn.
    """
    one, other = pairs(rollouts.shape[-3])
    return aligned_error(torch.cdist(rollouts[..., one, :, :], rollouts[..., other, :, :]))
