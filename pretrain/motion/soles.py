"""Soles: poses of a clip's feet, and when they stand. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.characters.rotations import rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip

NEAR_GROUND = 0.05  # m, of a sole's lowest point while it stands
SLOW = 0.55  # m/s, of that point while it stands; a foot in swing passes the ground at twice that
SIDEWAYS = 0.26  # cosine of a sole's tilt, below which the foot lies and does not stand
SHORTEST = 0.1  # s, of a contact and of a gap in one


@dataclass(frozen=True)
class Soles:
    """Corners of the soles of a clip's feet."""

    feet: tuple[str, ...]
    corners: np.ndarray  # (T, F, 4, 3) m, world
    ankles: np.ndarray  # (T, F, 3) m, world
    rotations: np.ndarray  # (T, F, 4) wxyz, world
    fps: float

    @property
    def lowest(self) -> np.ndarray:
        """Height of each foot's lowest corner, (T, F) m."""
        return self.corners[..., 2].min(-1)

    @property
    def upright(self) -> np.ndarray:
        """Cosine of the tilt of each foot, (T, F)."""
        return rotate(self.rotations, np.array([0.0, 0.0, 1.0]))[..., 2]

    def slips(self) -> np.ndarray:
        """Displacement of each sole's lowest part over the ground between frames, (T - 1, F, 2)
        m."""
        height = self.corners[..., 2] - self.lowest[..., None]
        weight = np.exp(-(height[1:] + height[:-1]) / 0.01)
        weight = weight / weight.sum(-1, keepdims=True)
        moved = np.diff(self.corners[..., :2], axis=0)
        return (moved * weight[..., None]).sum(-2)


def sole_corners(skeleton: Skeleton, foot: str) -> np.ndarray:
    """The four lowest corners of a foot, (4, 3) m in its own frame."""
    body = skeleton.bodies.index(foot)
    points = np.array(
        [[x, y, z - radius] for of, x, y, z, radius in skeleton.surface if of == body]
    )
    return points[np.argsort(points[:, 2], kind="stable")[:4]]


def soles_of(clip: MotionClip) -> Soles:
    """The soles of `clip`."""
    positions, rotations = clip.world_poses
    feet = clip.skeleton.feet
    ids = [clip.skeleton.bodies.index(foot) for foot in feet]
    corners = [
        positions[:, body, None]
        + rotate(rotations[:, body, None], sole_corners(clip.skeleton, foot))
        for foot, body in zip(feet, ids, strict=True)
    ]
    return Soles(feet, np.stack(corners, 1), positions[:, ids], rotations[:, ids], clip.fps)


def contacts(
    soles: Soles,
    ground: float = 0.0,
    near: float = NEAR_GROUND,
    slow: float = SLOW,
    upright: float = -np.inf,
) -> np.ndarray:
    """Whether each foot stands, (T, F) bool: nearer than `near` (m) to the ground, slower than
    `slow` (m/s) and the cosine of its tilt not below `upright`.

    Gaps and touches below SHORTEST do not count.
    """
    speed = np.linalg.norm(soles.slips(), axis=-1) * soles.fps
    slowest = np.minimum(np.concatenate([speed[:1], speed]), np.concatenate([speed, speed[-1:]]))
    on_ground = (soles.lowest - ground < near) & (soles.upright >= upright)
    standing = (slowest < slow) & on_ground
    least = max(1, round(SHORTEST * soles.fps))
    return np.stack([_longer(_longer(row, False, least), True, least) for row in standing.T], -1)


def runs(row: np.ndarray) -> list[tuple[int, int]]:
    """Where `row` (T,) bool is true: (first, last) of each stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
    return [
        (int(first), int(after) - 1) for first, after in zip(edges[::2], edges[1::2], strict=True)
    ]


def _longer(row: np.ndarray, value: bool, least: int) -> np.ndarray:
    """`row` (T,) with stretches of `value` below `least` frames inverted, except at its ends."""
    row = row.copy()
    for first, last in runs(row == value):
        if last - first + 1 < least and first > 0 and last < len(row) - 1:
            row[first : last + 1] = not value
    return row


def ground_height(soles: Soles) -> float:
    """Height of the ground under the feet: the median height of standing soles, m."""
    lowest = soles.lowest.min(-1)
    ground = float(np.quantile(lowest, 0.2))
    for _ in range(3):
        standing = contacts(soles, ground)
        heights = soles.lowest[standing]
        if not len(heights):
            return ground
        ground = float(np.median(heights))
    return ground
