"""Measures of motion, as pure functions of tensors. What they say of a skill library is in `pretrain/evaluate.py`."""

from __future__ import annotations

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


def aligned_error(cost: Tensor) -> float:
    """Mean cost along the cheapest monotone path from corner to corner of a cost matrix (T, U): dynamic time warping.

    (Sakoe and Chiba 1978, symmetric steps of one; the path's length is the divisor.)
    """
    rows = cost.tolist()
    above = [(0.0, 0)] + [(torch.inf, 0)] * len(rows[0])  # (total, steps) of the best path to each column
    for row in rows:
        here = [(torch.inf, 0)]
        for u, price in enumerate(row):
            total, steps = min(above[u], above[u + 1], here[u])
            here.append((total + price, steps + 1))
        above = here
    total, steps = above[-1]
    return total / steps


def jerk(joint_pos: Tensor, rate: float) -> Tensor:
    """Mean absolute third derivative of joint angles (T, ..., J) rad at `rate` Hz: (...) rad/s^3."""
    third = joint_pos[3:] - 3 * joint_pos[2:-1] + 3 * joint_pos[1:-2] - joint_pos[:-3]
    return (third * rate**3).abs().mean(-1).mean(0)


def spread(rollouts: Tensor) -> float:
    """Mean distance between any two of K rollouts (K, T, F), frame by frame."""
    k = len(rollouts)
    distance = torch.stack([torch.cdist(frame, frame) for frame in rollouts.unbind(1)]).mean(0)
    return float(distance.sum() / (k * (k - 1)))
