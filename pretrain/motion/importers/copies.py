"""Removes repeated poses, as from a change of a file's rate without new frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.motion.clip import MotionClip

SAME = 1e-5  # largest difference of equal poses, m and per part of a quaternion
OFTEN = 0.5  # share of poses that differ from the last, in a clip without pauses


def without_copies(clip: MotionClip) -> MotionClip:
    """Every n-th frame at an n-th of the rate, and a warning, where each pose is stored n times.

    Repeated frames would stop every joint and jerk it in between."""
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
    """How many times each pose is stored, 1 where poses differ or hardly move; and the first frame
    of a whole group."""
    stored = [clip.root_pos, clip.root_rot, *clip.joint_rot.values()]
    moved = np.max([np.abs(np.diff(x, axis=0)).max(-1) for x in stored], axis=0) > SAME
    steps = np.flatnonzero(moved) + 1
    if len(steps) < 2:
        return 1, 0
    copies = int(np.gcd.reduce(np.diff(steps)))
    if copies < 2 or len(steps) < OFTEN * len(moved) / copies:
        return 1, 0
    return copies, int(steps[0] % copies)
