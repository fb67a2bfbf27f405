"""Locks standing feet to the ground: they neither slide, float nor sink. Numpy only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.poses import bone_length, limb_of, with_feet
from pretrain.motion.soles import (
    NEAR_GROUND,
    SIDEWAYS,
    Soles,
    contacts,
    ground_height,
    runs,
    sole_corners,
    soles_of,
)

FLAT = np.radians(8)  # a standing sole tilted by less is laid flat
TILTED = np.radians(20)  # a sole tilted by more stands on its heel or toe
REACH = 0.99  # of a leg's length, to which it may be stretched


def plant(clip: MotionClip) -> MotionClip:
    """`clip` with the ground at z = 0 and its standing feet locked to it.

    The root moves at the speed at which standing feet do not slide; each standing sole is held in
    place, and laid flat if nearly flat; between two contacts a foot's correction fades from one to
    the other. Legs bend to reach; the root is lowered where a leg would be too short."""
    ground = ground_height(soles_of(clip))
    clip = replace(clip, root_pos=clip.root_pos - np.array([0, 0, ground]))
    standing = contacts(soles_of(clip))
    return _locked(_paced(clip, standing), standing)


def replant(clip: MotionClip) -> MotionClip:
    """`plant` for a clip that was planted and then edited: ground and pace are already right. A
    foot that lies, as in getting up, is left."""
    return _locked(clip, contacts(soles_of(clip), near=0.5 * NEAR_GROUND, upright=SIDEWAYS))


def _locked(clip: MotionClip, standing: np.ndarray) -> MotionClip:
    """`clip` with feet held still while `standing` (T, F)."""
    soles = _flattened(soles_of(clip), clip.skeleton, standing)
    moves = np.stack([_foot_moves(soles, standing, foot) for foot in range(len(soles.feet))], 1)
    targets = soles.ankles + moves
    clip = lowered(clip, soles.feet, targets, standing)
    ankles = {foot: targets[:, i] for i, foot in enumerate(soles.feet)}
    feet = {foot: soles.rotations[:, i] for i, foot in enumerate(soles.feet)}
    return with_feet(clip, ankles, feet)


def _paced(clip: MotionClip, standing: np.ndarray) -> MotionClip:
    """Move the root so that standing feet do not slide on average over a second.

    Weights are highest amid a contact: at its ends a foot rolls."""
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
    """Lay nearly flat standing soles flat, by a turn about a level axis through the ankle."""
    rotations = soles.rotations.copy()
    corners = soles.corners.copy()
    for i, foot in enumerate(soles.feet):
        q = rotations[:, i]
        up = rotate(q, np.array([0, 0, 1.0]))
        tilt = np.arccos(up[:, 2].clip(-1, 1))
        kept_share = np.clip((tilt - FLAT) / (TILTED - FLAT), 0, 1)
        share = smooth(standing[:, i].astype(float)[:, None], 1.0)[:, 0] * (
            1 - kept_share**2 * (3 - 2 * kept_share)
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
    """Displacement of a foot that holds it still in stance, (T, 3) m."""
    frames = len(soles.corners)
    slip = soles.slips()[:, foot]
    standing_moves = np.full((frames, 3), np.nan)
    for first, last in runs(standing[:, foot]):
        path = np.concatenate([np.zeros((1, 2)), np.cumsum(slip[first:last], axis=0)])
        standing_moves[first : last + 1, :2] = path.mean(0) - path
        standing_moves[first : last + 1, 2] = -soles.lowest[first : last + 1, foot]
    moves = _filled(standing_moves)
    moves[:, 2] = np.maximum(moves[:, 2], -soles.lowest[:, foot])
    return moves


def _filled(values: np.ndarray) -> np.ndarray:
    """NaN frames of (T, 3) filled by a smooth fade from the last valid frame to the next."""
    valid = np.flatnonzero(~np.isnan(values[:, 0]))
    if not len(valid):
        return np.zeros_like(values)
    frames = np.arange(len(values))
    before = valid[np.clip(np.searchsorted(valid, frames, side="right") - 1, 0, None)]
    behind = valid[np.clip(np.searchsorted(valid, frames), None, len(valid) - 1)]
    share = np.clip((frames - before) / np.maximum(behind - before, 1), 0, 1)
    share = (share * share * (3 - 2 * share))[:, None]
    return values[before] * (1 - share) + values[behind] * share


def lowered(
    clip: MotionClip, feet: tuple[str, ...], targets: np.ndarray, standing: np.ndarray
) -> MotionClip:
    """The root as low as the legs need to reach the targets (T, F, 3) of standing feet."""
    skeleton = clip.skeleton
    positions, _ = clip.world_poses
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
    """Gaussian means over time, `sigma` in frames, (T, D); beyond its ends x is constant."""
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
