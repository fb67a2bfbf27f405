"""Finds jumps of the root between frames of a file, which resampling would hide."""

from __future__ import annotations

import numpy as np

from pretrain.characters.rotations import conjugate, log, multiply
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.feasibility import FASTEST, FASTEST_TURN


def find_jumps(clip: MotionClip) -> tuple[str, ...]:
    """A line each for the fastest step and turn of the root, where infeasible; none at the control
    rate or below, at which `find_infeasible` finds them."""
    if clip.fps <= CONTROL_RATE:
        return ()
    way = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=-1)
    turn = log(multiply(clip.root_rot[1:], conjugate(clip.root_rot[:-1])))
    turn = np.linalg.norm(turn, axis=-1)
    lines = []
    for size, most, unit, shown in (
        (way, FASTEST, "m/s", f"{way.max():.2f} m"),
        (turn, FASTEST_TURN, "rad/s", f"{np.degrees(turn.max()):.0f} degrees"),
    ):
        frame = int(size.argmax())
        speed = size[frame] * clip.fps
        if speed > most:
            # in the time of edits: importers may drop frames at the start or repeated ones
            jump = f"the root jumps by {shown} after {frame / clip.fps:.2f} s, {speed:.0f} {unit}"
            lines.append(f"{clip.name}: {jump}; expected {most:g} at most; trim it")
    return tuple(lines)
