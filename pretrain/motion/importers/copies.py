"""Poses that a file stores several times each, as after a change of its rate without new frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.motion.clip import MotionClip

SAME = 1e-5  # by which two frames of one pose differ, m and in parts of quaternions
OFTEN = 0.5  # of the poses differ from the one before, in a clip that is no pause


def without_copies(clip: MotionClip) -> MotionClip:
    """Every n-th frame at an n-th of the rate, and a warning, where each pose is stored n times.

    Frames that are equal would be stops of every joint, between jerks.
    """
    copies, first = count_copies(clip)
    if copies == 1:
        return clip
    kept_frames = np.unique([0, *range(first, len(clip), copies)])
    often = "twice: every second" if copies == 2 else f"{copies} times: one of {copies}"
    rates = f"{clip.fps:g} -> {clip.fps / copies:g} frames/s"
    note = f"{clip.name}: every pose is stored {often} frame kept, {rates}"
    return replace(
        clip,
        fps=clip.fps / copies,
        root_pos=clip.root_pos[kept_frames],
        root_rot=clip.root_rot[kept_frames],
        joint_rot={body: q[kept_frames] for body, q in clip.joint_rot.items()},
        warnings=(*clip.warnings, note),
    )


def count_copies(clip: MotionClip) -> tuple[int, int]:
    """How many times each pose is stored, 1 where poses differ or little moves at all; and the
    first frame of a whole group.
    """
    stored = [clip.root_pos, clip.root_rot, *clip.joint_rot.values()]
    moved = np.max([np.abs(np.diff(x, axis=0)).max(-1) for x in stored], axis=0) > SAME
    steps = np.flatnonzero(moved) + 1
    if len(steps) < 2:
        return 1, 0
    copies = int(np.gcd.reduce(np.diff(steps)))
    if copies < 2 or len(steps) < OFTEN * len(moved) / copies:
        return 1, 0
    return copies, int(steps[0] % copies)
