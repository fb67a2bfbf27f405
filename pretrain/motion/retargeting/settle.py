"""Moves a retargeted clip into feasible poses on the ground. Numpy only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import angle_between
from pretrain.motion.clip import MotionClip
from pretrain.motion.retargeting.hinge_ranges import hold_in_ranges
from pretrain.motion.stance import plant, replant

ROUNDS = 2  # of planting again after joints are held again
SLIDING = np.radians(5.0)  # turn of a held joint below which its foot hardly slides
CHANGED = np.radians(1.0)  # turn of a held joint above which a frame counts as changed


def settle_retargeted(clip: MotionClip) -> MotionClip:
    """`clip` with every joint within its hinges' ranges and its feet planted, and a warning with
    the largest turn of a joint.

    Planting bends legs and lays soles flat, which may take them past their ranges again.
    """
    held = hold_in_ranges(clip)
    planted = plant(held)
    settled = hold_in_ranges(planted)
    for _ in range(ROUNDS):
        if max(turn.max() for turn in _turns(planted, settled).values()) < SLIDING:
            break
        planted = replant(settled)
        settled = hold_in_ranges(planted)
    return replace(settled, warnings=(*settled.warnings, *_describe_held(clip, held)))


def _turns(clip: MotionClip, held: MotionClip) -> dict[str, np.ndarray]:
    """The angle by which each joint differs, (T,) rad, by body."""
    return {
        body: angle_between(turns, held.joint_rot[body]) for body, turns in clip.joint_rot.items()
    }


def _describe_held(clip: MotionClip, held: MotionClip) -> tuple[str, ...]:
    """A line on what `hold_in_ranges` changed, if anything."""
    turns = _turns(clip, held)
    body = max(turns, key=lambda body: float(turns[body].max()))
    frame = int(turns[body].argmax())
    count = int((np.max(list(turns.values()), axis=0) > CHANGED).sum())
    if count == 0:
        return ()
    return (
        f"{clip.name}: {count} of {len(clip)} frames are held within the hinges' ranges, "
        f"{body} by up to {np.degrees(turns[body][frame]):.0f} degrees (frame {frame})",
    )
