"""Puts a body that is never in flight on the ground. Numpy only, pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import rotate
from pretrain.motion.clip import MotionClip
from pretrain.motion.poses import with_hand
from pretrain.motion.stance import replant, smooth

BODY_WINDOW = 0.25  # s of the window in which the lowest height moves the root
HAND_WINDOW = 0.1  # s of the window in which sinking raises a hand
UP = np.array([0.0, 0.0, 1.0])


def settle(clip: MotionClip) -> MotionClip:
    """`clip` with some part of the body near the ground at any time and none below it.

    Retargeting one floating body onto another leaves a gap of some centimeters that changes with
    the pose. The root is lowered by the height of the lowest part, hands aside, smoothed; standing
    feet are locked, hands that sink are raised by inverse kinematics, and the remaining gap is
    closed. Where the lowest part changes fast, smoothing leaves up to a few centimeters."""
    hands = [clip.skeleton.bodies.index(hand) for hand in _hands(clip)]
    lowest = np.delete(lowest_of_bodies(clip), hands, axis=1).min(-1)
    clip = _raised(clip, _largest(-lowest, round(BODY_WINDOW * clip.fps)))
    clip = _with_hands_on_ground(replant(clip))
    lowest = lowest_of_bodies(clip).min(-1)
    return _raised(clip, _largest(-lowest, round(HAND_WINDOW * clip.fps)))


def _raised(clip: MotionClip, way: np.ndarray) -> MotionClip:
    """The root raised by `way` (T,) m."""
    return replace(clip, root_pos=clip.root_pos + way[:, None] * UP)


def _with_hands_on_ground(clip: MotionClip) -> MotionClip:
    """Raise the hands that sink."""
    for hand in _hands(clip):
        body = clip.skeleton.bodies.index(hand)
        sunk = np.maximum(-lowest_of_bodies(clip)[:, body], 0)
        way = np.maximum(_largest(sunk, round(HAND_WINDOW * clip.fps)), sunk)
        clip = with_hand(clip, hand, clip.world_poses[0][:, body] + way[:, None] * UP)
    return clip


def lowest_of_bodies(clip: MotionClip) -> np.ndarray:
    """Height of the lowest point of each body, (T, B) m."""
    positions, rotations = clip.world_poses
    surface = np.array(clip.skeleton.surface)  # (P, 5): body, x, y, z, radius
    bodies = surface[:, 0].astype(int)
    points = positions[:, bodies] + rotate(rotations[:, bodies], surface[:, 1:4])
    heights = points[..., 2] - surface[:, 4]
    of_body = [heights[:, bodies == body].min(-1) for body in range(len(clip.skeleton.bodies))]
    return np.stack(of_body, -1)


def _hands(clip: MotionClip) -> tuple[str, ...]:
    return tuple(body for body in clip.skeleton.bodies if body.endswith("_hand"))


def _largest(x: np.ndarray, reach: int) -> np.ndarray:
    """The largest of (T,) within `reach` frames, smoothed."""
    padded = np.pad(x, reach, mode="edge")
    largest = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).max(-1)
    return smooth(largest[:, None], reach / 2)[:, 0]
