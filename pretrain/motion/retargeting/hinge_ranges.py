"""Holds poses within hinge ranges. Numpy only: the service imports it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from pretrain.characters.rotations import (
    AXIS,
    angle_between,
    conjugate,
    from_axis_angle,
    multiply,
)
from pretrain.characters.skeleton import Joint, Skeleton
from pretrain.motion.clip import MotionClip, continuous
from pretrain.motion.feasibility import past_range

# rad kept to the end of a range: some shoulder ranges end at a right angle, where two hinges share
# an axis and their angles are undefined
MARGIN = 0.01
ROUNDING = 1e-6  # rad past a range that counts as its end
# largest correction of a joint, rad: more means a limb mapped to the wrong joint, or one that turns
# over in the file, which `check` must report
MAX_HELD = 1.0
STARTS = (0.2, 0.8)  # shares of each hinge's range at which searches start
FIRST_SWEEPS = 4  # from every start
MORE_SWEEPS = 12  # from the best of them


def hold_in_ranges(clip: MotionClip) -> MotionClip:
    """`clip` with joints moved to the nearest rotation within their hinges' ranges, where that is
    at most MAX_HELD away; all else is unchanged, bit for bit.

    Frames are handled separately: where a limb crosses a region that its joint cannot reach, it may
    jump from one end of a range to the other."""
    skeleton = clip.skeleton
    past = past_range(skeleton, clip.joint_pos)
    joint_rot = dict(clip.joint_rot)
    for joint in skeleton.joints:
        frames = np.flatnonzero((past[:, joint.start : joint.stop] > ROUNDING).any(-1))
        if len(frames):
            turns = joint_rot[joint.body].copy()
            nearest = nearest_within(skeleton, joint, turns[frames])
            near = angle_between(nearest, turns[frames]) <= MAX_HELD
            turns[frames[near]] = nearest[near]
            joint_rot[joint.body] = continuous(turns)
    return replace(clip, joint_rot=joint_rot)


def nearest_within(skeleton: Skeleton, joint: Joint, turns: np.ndarray) -> np.ndarray:
    """The rotations within the joint's ranges that differ from `turns` by the least angle,
    (T, 4) -> (T, 4)."""
    lower = np.array(skeleton.lower[joint.start : joint.stop]) + MARGIN
    upper = np.array(skeleton.upper[joint.start : joint.stop]) - MARGIN
    shares = np.array(list(product(STARTS, repeat=len(joint.axes))))
    angles = np.broadcast_to(lower + shares * (upper - lower), (len(turns), *shares.shape))
    targets = np.broadcast_to(turns[:, None], (len(turns), len(shares), 4))
    for _ in range(FIRST_SWEEPS):
        angles = _sweep(joint.axes, targets, angles, (lower, upper))
    best = angle_between(_compose(joint.axes, angles), targets).argmin(1)
    angles = angles[np.arange(len(turns)), best]
    for _ in range(MORE_SWEEPS):
        angles = _sweep(joint.axes, turns, angles, (lower, upper))
    return _compose(joint.axes, angles)


def _sweep(
    axes: str, turns: np.ndarray, angles: np.ndarray, ranges: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Angles (..., n) after one sweep of coordinate ascent: each hinge in turn takes its best angle
    exactly."""
    angles = angles.copy()
    for hinge, axis in enumerate(axes):
        outer = _compose(axes[:hinge], angles[..., :hinge])
        inner = _compose(axes[hinge + 1 :], angles[..., hinge + 1 :])
        rest = multiply(multiply(conjugate(outer), turns), conjugate(inner))
        angles[..., hinge] = _best_angle(axis, rest, ranges[0][hinge], ranges[1][hinge])
    return angles


def _best_angle(axis: str, turns: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """The angle about `axis` within [lower, upper] that comes nearest to `turns`, (..., 4) ->
    (...) rad."""
    real = turns[..., 0]
    along = turns[..., 1 + AXIS[axis]]
    free = 2 * np.arctan2(along, real)
    free = (free + np.pi) % (2 * np.pi) - np.pi

    def agreement(angle: float) -> np.ndarray:
        return np.abs(np.cos(angle / 2) * real + np.sin(angle / 2) * along)

    end = np.where(agreement(lower) > agreement(upper), lower, upper)
    return np.where((lower <= free) & (free <= upper), free, end)


def _compose(axes: str, angles: np.ndarray) -> np.ndarray:
    """The rotation of serial hinges, (..., n) rad -> (..., 4) wxyz."""
    turns = np.zeros((*angles.shape[:-1], 4))
    turns[..., 0] = 1.0
    for hinge, axis in enumerate(axes):
        turns = multiply(turns, from_axis_angle(axis, angles[..., hinge]))
    return turns
