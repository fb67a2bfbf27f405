"""Feet on the ground: when they stand, and a clip whose standing feet neither slide, float nor
sink. Numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.poses import bone_length, limb_of, with_feet, world_poses

NEAR_GROUND = 0.05  # m, of a sole's lowest point while it stands
SLOW = 0.55  # m/s, of that point while it stands; a foot in swing passes the ground at twice that
SHORTEST = 0.1  # s, of a contact and of a gap in one
FLAT = np.radians(8)  # a standing sole that is tilted by less is laid flat
TILTED = np.radians(20)  # one that is tilted by more stands on its heel or toe
REACH = 0.99  # of a leg's length, which it may be stretched to


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

    def slips(self) -> np.ndarray:
        """How far the lowest part of each sole moves over the ground from a frame to the next, (T -
        1, F, 2) m.
        """
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
    """Where the soles of `clip` are."""
    positions, rotations = world_poses(clip)
    feet = clip.skeleton.feet
    ids = [clip.skeleton.bodies.index(foot) for foot in feet]
    corners = [
        positions[:, body, None]
        + rotate(rotations[:, body, None], sole_corners(clip.skeleton, foot))
        for foot, body in zip(feet, ids, strict=True)
    ]
    return Soles(feet, np.stack(corners, 1), positions[:, ids], rotations[:, ids], clip.fps)


def contacts(
    soles: Soles, ground: float = 0.0, near: float = NEAR_GROUND, slow: float = SLOW
) -> np.ndarray:
    """Whether each foot stands, (T, F) bool: nearer than `near` (m) to the ground and slower than
    `slow` (m/s).

    Gaps and touches below SHORTEST do not count.
    """
    speed = np.linalg.norm(soles.slips(), axis=-1) * soles.fps
    slowest = np.minimum(np.concatenate([speed[:1], speed]), np.concatenate([speed, speed[-1:]]))
    standing = (slowest < slow) & (soles.lowest - ground < near)
    least = max(1, round(SHORTEST * soles.fps))
    return np.stack([_longer(_longer(row, False, least), True, least) for row in standing.T], -1)


def runs(row: np.ndarray) -> list[tuple[int, int]]:
    """Where `row` (T,) bool is true: (first, last) of each stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
    return [
        (int(first), int(after) - 1) for first, after in zip(edges[::2], edges[1::2], strict=True)
    ]


def _longer(row: np.ndarray, value: bool, least: int) -> np.ndarray:
    """`row` (T,) with stretches of `value` below `least` frames turned over, but for those at its
    ends.
    """
    row = row.copy()
    for first, last in runs(row == value):
        if last - first + 1 < least and first > 0 and last < len(row) - 1:
            row[first : last + 1] = not value
    return row


def ground_height(soles: Soles) -> float:
    """Where the ground is under the feet: the median of the lowest sole's height while it stands,
    m.
    """
    lowest = soles.lowest.min(-1)
    ground = float(np.quantile(lowest, 0.2))
    for _ in range(3):
        standing = contacts(soles, ground)
        heights = soles.lowest[standing]
        if not len(heights):
            return ground
        ground = float(np.median(heights))
    return ground


def plant(clip: MotionClip) -> MotionClip:
    """`clip` with the ground at z = 0 and its standing feet locked to it.

    The root moves at the speed at which standing feet do not slide; each standing sole is laid flat
    if it nearly is, and held where it stands; between two contacts what moved a foot fades from one
    to the other. Legs bend to reach, the root sinks where a leg would be too short."""
    ground = ground_height(soles_of(clip))
    clip = replace(clip, root_pos=clip.root_pos - np.array([0, 0, ground]))
    standing = contacts(soles_of(clip))
    return _locked(_paced(clip, standing), standing)


def replant(clip: MotionClip) -> MotionClip:
    """`plant` for a clip that was planted before and edited since: ground and pace are right
    already.
    """
    return _locked(clip, contacts(soles_of(clip), near=0.5 * NEAR_GROUND))


def _locked(clip: MotionClip, standing: np.ndarray) -> MotionClip:
    """`clip` whose feet stand still while they are `standing` (T, F)."""
    soles = _flattened(soles_of(clip), clip.skeleton, standing)
    moves = np.stack([_foot_moves(soles, standing, foot) for foot in range(len(soles.feet))], 1)
    targets = soles.ankles + moves
    clip = lowered(clip, soles.feet, targets, standing)
    ankles = {foot: targets[:, i] for i, foot in enumerate(soles.feet)}
    feet = {foot: soles.rotations[:, i] for i, foot in enumerate(soles.feet)}
    return with_feet(clip, ankles, feet)


def _paced(clip: MotionClip, standing: np.ndarray) -> MotionClip:
    """The root carried along so that standing feet do not slide on average over a second.

    The middle of a contact counts: at its ends a foot rolls on or lifts off.
    """
    slips = soles_of(clip).slips()
    middle = np.zeros((len(slips), len(clip.skeleton.feet)))
    for foot, row in enumerate(standing.T):
        for first, last in runs(row):
            steps = last - first
            middle[first:last, foot] = np.sin(np.pi * (np.arange(steps) + 0.5) / max(steps, 1)) ** 4
    width = 0.35 * clip.fps
    drift = smooth((slips * middle[..., None]).sum(1), width)
    drift = drift / (smooth(middle.sum(1, keepdims=True), width) + 1e-3)
    shift = np.concatenate([np.zeros((1, 2)), -np.cumsum(drift, axis=0)])
    return replace(clip, root_pos=clip.root_pos + np.pad(shift, ((0, 0), (0, 1))))


def _flattened(soles: Soles, skeleton: Skeleton, standing: np.ndarray) -> Soles:
    """Standing soles that are nearly flat, flat: turned about a level axis through the ankle."""
    rotations = soles.rotations.copy()
    corners = soles.corners.copy()
    for i, foot in enumerate(soles.feet):
        q = rotations[:, i]
        up = rotate(q, np.array([0, 0, 1.0]))
        tilt = np.arccos(up[:, 2].clip(-1, 1))
        kept = np.clip((tilt - FLAT) / (TILTED - FLAT), 0, 1)
        share = smooth(standing[:, i].astype(float)[:, None], 1.0)[:, 0] * (
            1 - kept**2 * (3 - 2 * kept)
        )
        axis = np.stack([up[:, 1], -up[:, 0], np.zeros(len(up))], -1)
        axis = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-9)
        half = (0.5 * tilt * share)[:, None]
        back = np.concatenate([np.cos(half), np.sin(half) * axis], -1)
        rotations[:, i] = continuous(multiply(back, q))
        points = sole_corners(skeleton, foot)
        corners[:, i] = soles.ankles[:, i, None] + rotate(rotations[:, i, None], points)
    return replace(soles, rotations=rotations, corners=corners)


def _foot_moves(soles: Soles, standing: np.ndarray, foot: int) -> np.ndarray:
    """What moves a foot so that it stands still where it stands, (T, 3) m."""
    frames = len(soles.corners)
    slip = soles.slips()[:, foot]
    known = np.full((frames, 3), np.nan)
    for first, last in runs(standing[:, foot]):
        path = np.concatenate([np.zeros((1, 2)), np.cumsum(slip[first:last], axis=0)])
        known[first : last + 1, :2] = path.mean(0) - path
        known[first : last + 1, 2] = -soles.lowest[first : last + 1, foot]
    moves = _filled(known)
    moves[:, 2] = np.maximum(moves[:, 2], -soles.lowest[:, foot])
    return moves


def _filled(known: np.ndarray) -> np.ndarray:
    """NaN frames of (T, 3) filled by an even fade from what is before to what is behind."""
    there = np.flatnonzero(~np.isnan(known[:, 0]))
    if not len(there):
        return np.zeros_like(known)
    frames = np.arange(len(known))
    before = there[np.clip(np.searchsorted(there, frames, side="right") - 1, 0, None)]
    behind = there[np.clip(np.searchsorted(there, frames), None, len(there) - 1)]
    share = np.clip((frames - before) / np.maximum(behind - before, 1), 0, 1)
    share = (share * share * (3 - 2 * share))[:, None]
    return known[before] * (1 - share) + known[behind] * share


def lowered(
    clip: MotionClip, feet: tuple[str, ...], targets: np.ndarray, standing: np.ndarray
) -> MotionClip:
    """The root as low as the legs need to reach the targets (T, F, 3) of standing feet."""
    skeleton = clip.skeleton
    positions, _ = world_poses(clip)
    drops = []
    for i, foot in enumerate(feet):
        thigh, shin = limb_of(skeleton, foot)
        length = REACH * (bone_length(skeleton, shin) + bone_length(skeleton, foot))
        gap = positions[:, skeleton.bodies.index(thigh)] - targets[:, i]
        highest = np.sqrt(np.maximum(length**2 - (gap[:, :2] ** 2).sum(-1), 0))
        drops.append(np.where(standing[:, i], np.maximum(gap[:, 2] - highest, 0), 0))
    drop = np.max(drops, axis=0)
    width = max(1, round(0.07 * clip.fps))
    padded = np.pad(drop, width, mode="edge")
    widest = np.lib.stride_tricks.sliding_window_view(padded, 2 * width + 1).max(-1)
    sunk = smooth(widest[:, None], width / 2) * np.array([0.0, 0.0, 1.0])
    return replace(clip, root_pos=clip.root_pos - sunk)


def smooth(x: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian means over time, `sigma` in frames, (T, D); beyond the ends x stays as it is
    there.
    """
    reach = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    padded = np.pad(x, ((reach, reach), (0, 0)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=0) @ (
        weights / weights.sum()
    )


def turned(clip: MotionClip, angle: float) -> MotionClip:
    """`clip` turned about the vertical through the origin, rad."""
    turn = from_axis_angle("z", np.full(len(clip), angle))
    return replace(
        clip,
        root_pos=rotate(turn, clip.root_pos),
        root_rot=continuous(multiply(turn, clip.root_rot)),
    )
