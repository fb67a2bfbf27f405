"""Finds doubts about a clip, which are reported, and infeasible clips, which are also left out."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import angle_between, up_axis
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip

FASTEST = 12.0  # m/s of the root: a sprinter's record
# rad/s of a body relative to its parent; the default clips reach 31, in the arms of a backflip
FASTEST_TURN = 60.0
# rad past a hinge's range. The default clips are retargeted from other bodies and reach 0.7; knees
# in degrees reach 1.7, and quaternions in another order 2.2.
MAX_PAST_RANGE = 1.0
# Height of the root's up axis below which it points down, in more than half of the frames: of the
# default clips getup_faceup has most such frames, 24 of 114.
UPSIDE_DOWN = -0.5
UPSIDE_DOWN_SHARE = 0.5
STILL = 1e-6  # rad


def find_doubts(clip: MotionClip) -> tuple[str, ...]:
    """The importer's warnings, implausible poses, and what makes the clip infeasible."""
    return clip.warnings + find_implausible(clip) + find_infeasible(clip)


def find_implausible(clip: MotionClip) -> tuple[str, ...]:
    """Poses that a body can hardly hold, and signs of a misread file, one line each."""
    return (*_upside_down(clip), *_past_range(clip), *_motionless(clip))


def _upside_down(clip: MotionClip) -> tuple[str, ...]:
    down = int((up_axis(clip.root_rot)[:, 2] < UPSIDE_DOWN).sum())
    if down <= UPSIDE_DOWN_SHARE * len(clip):
        return ()
    reason = "are its quaternions in xyzw order, or y and z exchanged?"
    return (
        f"{clip.name}: the root's up axis points down in {down} of {len(clip)} frames; {reason}",
    )


def past_range(skeleton: Skeleton, joint_pos: np.ndarray) -> np.ndarray:
    """How far each hinge is past its range, (T, J) rad -> (T, J) rad, 0 or less within it.

    A whole turn more or less is the same pose, and a rotation of a ball joint has two triples of
    hinge angles: the one less far past its ranges counts."""
    past = _past(skeleton, slice(None), joint_pos)
    for ball in skeleton.balls:
        hinges = slice(ball.start, ball.stop)
        alternative = _past(
            skeleton, hinges, joint_pos[:, hinges] * np.array([1.0, -1.0, 1.0]) + np.pi
        )
        less = alternative.max(-1, keepdims=True) < past[:, hinges].max(-1, keepdims=True)
        past[:, hinges] = np.where(less, alternative, past[:, hinges])
    return past


def _past(skeleton: Skeleton, hinges: slice, angles: np.ndarray) -> np.ndarray:
    lower = np.array(skeleton.lower)[hinges]
    upper = np.array(skeleton.upper)[hinges]
    off = (angles - (lower + upper) / 2 + np.pi) % (2 * np.pi) - np.pi
    return np.abs(off) - (upper - lower) / 2


def _past_range(clip: MotionClip) -> tuple[str, ...]:
    """The hinge that is furthest past its range."""
    past = past_range(clip.skeleton, clip.joint_pos)
    if past.max() <= MAX_PAST_RANGE:
        return ()
    frame, hinge = np.unravel_index(int(past.argmax()), past.shape)
    lower = clip.skeleton.lower[hinge]
    upper = clip.skeleton.upper[hinge]
    expected = f"expected {lower:.2f} to {upper:.2f} rad; are its angles in degrees?"
    name = clip.skeleton.hinges[hinge]
    return (
        f"{clip.name}: hinge {name} is {past[frame, hinge]:.1f} rad past its range in frame "
        f"{frame}; {expected}",
    )


def find_turned(clip: MotionClip) -> tuple[str, ...]:
    """The hinge that is furthest past its range by its angle, where its pose is not: it turned all
    the way round, or to the other triple of angles of its joint."""
    angles = clip.joint_pos
    lower = np.array(clip.skeleton.lower)
    upper = np.array(clip.skeleton.upper)
    past = np.maximum(lower - angles, angles - upper)
    past[past_range(clip.skeleton, angles) > MAX_PAST_RANGE] = 0
    if past.max() <= MAX_PAST_RANGE:
        return ()
    frame, hinge = np.unravel_index(int(past.argmax()), past.shape)
    angle = f"{angles[frame, hinge]:.1f} rad in frame {frame}"
    expected = f"expected {lower[hinge]:.2f} to {upper[hinge]:.2f}"
    return (
        f"hinge {clip.skeleton.hinges[hinge]} turns on to {angle}, {expected}: edit `trim`, for "
        "the body cannot follow",
    )


def _motionless(clip: MotionClip) -> tuple[str, ...]:
    still = np.ptp(clip.joint_pos, 0).max() < STILL and np.ptp(clip.root_pos, 0).max() < STILL
    return (f"{clip.name}: nothing moves in its {len(clip)} frames",) if still else ()


def find_infeasible(clip: MotionClip) -> tuple[str, ...]:
    """Motion that no body can follow, with its worst frame; empty for a feasible clip."""
    # from frame to frame: central differences would halve the speed of a jump
    speed = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=-1) * clip.fps
    fast = (
        f"{clip.name}: the root moves at {speed.max():.1f} m/s in frame {speed.argmax()}; "
        f"expected at most {FASTEST:g}"
    )
    turning = {
        body: _turning(rotations, clip.fps)
        for body, rotations in {"root": clip.root_rot, **clip.joint_rot}.items()
    }
    turns = (
        f"{clip.name}: {body} turns at {rate.max():.0f} rad/s in frame {rate.argmax()}; "
        f"expected at most {FASTEST_TURN:g}"
        for body, rate in turning.items()
        if rate.max() > FASTEST_TURN
    )
    return (*((fast,) if speed.max() > FASTEST else ()), *turns)


def _turning(rotations: np.ndarray, fps: float) -> np.ndarray:
    """Angular speed from each of quaternions (T, 4) to the next, (T - 1,) rad/s. Hinge rates are
    unbounded where the axes of a joint align."""
    return angle_between(rotations[1:], rotations[:-1]) * fps
