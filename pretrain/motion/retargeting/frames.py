"""Frames of a body's parts: rotations from axes, axes from joint positions. Numpy only."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

SNAP = np.radians(35)  # a rig's axes count as the body's within this angle


def unit(v: np.ndarray) -> np.ndarray:
    """v / |v|, (..., 3); a zero vector is kept."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)


def across(v: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The unit part of v at right angles to the unit vector `axis`, (..., 3)."""
    return unit(v - (v * axis).sum(-1, keepdims=True) * axis)


def frame_of(left: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Columns forward, left, up: `up` exact, `left` as near as possible. (..., 3), (..., 3) ->
    (..., 3, 3)."""
    up = unit(up)
    left = across(left, up)
    return np.stack([np.cross(left, up), left, up], -1)


def snapped(frame: np.ndarray) -> np.ndarray:
    """The nearest frame along coordinate axes, (3, 3), if it is within SNAP; else `frame`
    itself.
    """
    aligned = [
        np.array(signs) * np.eye(3)[:, list(order)]
        for order in permutations(range(3))
        for signs in SIGNS
    ]
    right_handed = [matrix for matrix in aligned if np.linalg.det(matrix) > 0]
    best = max(right_handed, key=lambda matrix: float((matrix * frame).sum()))
    angle = np.arccos(np.clip(((best * frame).sum() - 1) / 2, -1, 1))
    return best if angle < SNAP else frame


SIGNS = tuple(product((-1.0, 1.0), repeat=3))


def from_matrix(m: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) -> quaternions wxyz (..., 4), each by its largest component."""
    m00 = m[..., 0, 0]
    m11 = m[..., 1, 1]
    m22 = m[..., 2, 2]
    a = m[..., 2, 1]
    b = m[..., 0, 2]
    c = m[..., 1, 0]
    d = m[..., 1, 2]
    e = m[..., 2, 0]
    f = m[..., 0, 1]
    rows = [
        np.stack([1 + m00 + m11 + m22, a - d, b - e, c - f], -1),
        np.stack([a - d, 1 + m00 - m11 - m22, c + f, b + e], -1),
        np.stack([b - e, c + f, 1 - m00 + m11 - m22, a + d], -1),
        np.stack([c - f, b + e, a + d, 1 - m00 - m11 + m22], -1),
    ]
    q = np.stack(rows, -2)  # (..., 4, 4): each row is q times four times one component
    best = np.argmax(np.stack([row[..., i] for i, row in enumerate(rows)], -1), -1)
    q = np.take_along_axis(q, best[..., None, None], -2)[..., 0, :]
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def signed_angle(a: np.ndarray, b: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Angle from a to b about the unit vector `axis`, (..., 3) -> (...,) rad."""
    return np.arctan2((np.cross(a, b) * axis).sum(-1), (a * b).sum(-1))
