"""The unit sphere on which skills lie: paths along it. Pure; z of a clip comes from the
manifest."""

from __future__ import annotations

import itertools

import numpy as np

Array = np.ndarray
ANTIPODAL = 1e-4  # rad from a half turn: all great circles between opposite points are as short


def angle(a: Array, b: Array) -> float:
    """Between two unit vectors (D,), in rad; exact near 0 and near pi, where arccos is not."""
    return float(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def opposite(a: Array, b: Array) -> bool:
    return angle(a, b) > np.pi - ANTIPODAL


def between(a: Array, b: Array, share: float) -> Array:
    """The point `share` of the way from a to b, (D,), along the great circle (Shoemake 1985)."""
    arc = angle(a, b)
    if arc < 1e-6:
        return b if share >= 1 else a
    point = (np.sin((1 - share) * arc) * a + np.sin(share * arc) * b) / np.sin(arc)
    return (point / np.linalg.norm(point)).astype(np.float32)


def path(points: Array, steps: int) -> Array:
    """(K, D) unit rows -> (steps, D), from the first to the last, evenly spaced by angle along the
    way."""
    angles = [angle(a, b) for a, b in itertools.pairwise(points)]
    ends = np.cumsum([0.0, *angles])
    points_between = []
    for at in np.linspace(0, ends[-1], steps):
        k = min(int(np.searchsorted(ends, at, side="right")) - 1, len(angles) - 1)
        share = (at - ends[k]) / angles[k] if angles[k] > 0 else 1.0
        points_between.append(between(points[k], points[k + 1], min(1.0, share)))
    return np.array(points_between, np.float32)
