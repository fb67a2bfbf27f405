"""Fidelity: how far the distribution of style windows is from the clips'."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.ase.reference_windows import ReferenceWindows


def fidelity(windows: Tensor, demos: ReferenceWindows, scale: Tensor) -> float | None:
    """Frechet distance of `windows` (n, W * F) to the clips', over that between the clips' halves.

    The unit is the distance of the clips' first halves from their second. None of fewer than two.
    """
    if len(windows) < 2:
        return None
    first = torch.cumsum(demos.counts, 0) - demos.counts
    early = torch.arange(len(demos.clip)) - first[demos.clip] < demos.counts[demos.clip] / 2
    clips = demos.windows / scale
    return frechet(windows / scale, clips) / frechet(clips[early], clips[~early])


def frechet(a: Tensor, b: Tensor) -> float:
    """Squared Frechet distance between Gaussians fitted to rows a (n, F) and b (m, F).

    |mu_a - mu_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2). (Dowson and Landau 1982; the FID of Heusel
    et al. 2017.)
    """
    a = a.double()
    b = b.double()
    offset = (a.mean(0) - b.mean(0)).square().sum()
    cov_a = a.T.cov()
    cov_b = b.T.cov()
    root = _root(cov_a)
    cross = torch.linalg.eigvalsh(root @ cov_b @ root).clamp_min(0).sqrt().sum()
    return float(offset + cov_a.trace() + cov_b.trace() - 2 * cross)


def _root(symmetric: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(symmetric)
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T
