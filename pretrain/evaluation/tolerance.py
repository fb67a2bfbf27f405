"""Tolerance: the distance from a clip's windows within which a motion counts as the clip."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.sim.row_blocks import row_blocks

MAX_WINDOWS = 4096  # of a clip that are compared with all others; 137 s at 30 Hz


def repeat_distance(original: Tensor, mirror: Tensor, window: int) -> float:
    """95th percentile, over a clip's windows `original` (M, W * F), of the distance to the nearest
    one that does not overlap in time, or to the nearest of the mirrored clip, `mirror` (M, W * F).

    A longer clip is sampled at MAX_WINDOWS, evenly spaced: an hour has 10^10 pairs."""
    nearest: list[Tensor] = []
    index = torch.arange(len(original))
    looked_at = index[:: -(-len(original) // MAX_WINDOWS)]
    for rows in row_blocks(looked_at, len(original)):
        overlap = (rows[:, None] - index).abs() < window
        apart = torch.cdist(original[rows], original).masked_fill_(overlap, torch.inf).amin(1)
        nearest.append(torch.minimum(apart, torch.cdist(original[rows], mirror).amin(1)))
    return float(torch.cat(nearest).quantile(0.95))


def step_distance(original: Tensor) -> float:
    """Median distance of a clip's windows `original` (M, W * F) to the next, a control step later.

    A rollout is between two windows of a clip. Without this floor, a clip of one repeated cycle,
    played back half a control step later, would be outside its own tolerance. Captured gaits repeat
    less exactly than this: the `repeat_distance` of those in `everyday` is 1.3 to 3.3 times as
    large."""
    if len(original) < 2:
        return 0.0
    return float((original[1:] - original[:-1]).norm(dim=1).median())
