"""Fidelity: how far the distribution of style windows is from the clips'."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.ase.reference_windows import ReferenceWindows

BLOCK = 8192  # rows


def fidelity(windows: Tensor, demos: ReferenceWindows, scale: Tensor) -> float | None:
    """Squared Frechet distance of `windows` (n, W * F) to the clips', divided by that of the clips'
    first halves to their second. None for fewer than two windows."""
    if len(windows) < 2:
        return None
    first = torch.cumsum(demos.counts, 0) - demos.counts
    early = torch.arange(len(demos.clip)) - first[demos.clip] < demos.counts[demos.clip] / 2
    clips = fit_gaussian(demos.windows, scale)
    halves = [fit_gaussian(demos.windows[half], scale) for half in (early, ~early)]
    return frechet(fit_gaussian(windows, scale), clips) / frechet(halves[0], halves[1])


@dataclass(frozen=True)
class Gaussian:
    mean: Tensor  # (F,)
    covariance: Tensor  # (F, F)


def fit_gaussian(rows: Tensor, scale: Tensor) -> Gaussian:
    """Fit to rows (n, F) over their scale (F,), in double precision, in blocks of rows."""
    blocks = rows.split(BLOCK)
    total = torch.stack([(block / scale).double().sum(0) for block in blocks]).sum(0)
    mean = total / len(rows)
    scatter = torch.zeros(len(mean), len(mean), dtype=torch.double)
    for block in blocks:
        offset = (block / scale).double() - mean
        scatter += offset.T @ offset
    return Gaussian(mean, scatter / (len(rows) - 1))


def frechet(a: Gaussian, b: Gaussian) -> float:
    """Squared Frechet distance between two Gaussians.

    |mu_a - mu_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2). (Dowson and Landau 1982; the FID of Heusel
    et al. 2017.)
    """
    offset = (a.mean - b.mean).square().sum()
    root = _root(a.covariance)
    cross = torch.linalg.eigvalsh(root @ b.covariance @ root).clamp_min(0).sqrt().sum()
    return float(offset + a.covariance.trace() + b.covariance.trace() - 2 * cross)


def _root(symmetric: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(symmetric)
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T
