"""Moves a standing body over its feet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters import rotations
from pretrain.motion.balance import center_of_mass
from pretrain.motion.clip import MotionClip
from pretrain.motion.poses import foot_poses, with_feet

PASSES = 4  # each leaves a fifth of the gap, the legs' share of the mass


def balance(clip: MotionClip, ahead: float) -> MotionClip:
    """`clip`, a stand, moved so that its center of mass is on average midway between the ankles and
    `ahead` m before them; the feet stay."""
    ankles, _ = foot_poses(clip)
    middle = np.mean([ankles[foot] for foot in clip.skeleton.feet], axis=0)
    facing = rotations.heading_direction(clip.root_rot)
    before = middle[:, :2] + ahead * facing
    center = center_of_mass(clip)[:, :2]
    return move_over_feet(clip, center + (before - center).mean(0))


def move_over_feet(
    clip: MotionClip, goal: np.ndarray, feet: MotionClip | None = None
) -> MotionClip:
    """`clip` with its center of mass above `goal` (T, 2) m, and its feet where those of `feet`, or
    its own, are."""
    ankles, soles = foot_poses(feet or clip)
    moved = clip
    for _ in range(PASSES):
        moved = with_feet(moved, ankles, soles)
        gap = goal - center_of_mass(moved)[:, :2]
        moved = replace(moved, root_pos=moved.root_pos + np.pad(gap, ((0, 0), (0, 1))))
    return with_feet(moved, ankles, soles)
