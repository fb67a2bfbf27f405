"""Jerk: how rough a motion is."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from pretrain.characters.state import unflatten
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary


def jerk(joint_pos: Tensor, rate: float) -> Tensor:
    """Mean absolute third derivative of angles (T, ..., J) rad at `rate` Hz: (...) rad/s^3."""
    third = joint_pos[3:] - 3 * joint_pos[2:-1] + 3 * joint_pos[1:-2] - joint_pos[:-3]
    return (third * rate**3).abs().mean(-1).mean(0)


def clip_jerk(library: MotionLibrary, clips: list[int]) -> float:
    """Mean absolute jerk of the joints over the frames of `clips`, rad/s^3."""
    parts = [library.clip_frames[clip] for clip in clips]
    jerks = [float(jerk(unflatten(part).joint_pos, CONTROL_RATE)) for part in parts]
    return float(np.average(jerks, weights=[len(part) for part in parts]))
