"""What speaks against a clip, and what no body can do: the one is reported, the other is left out as well."""

from __future__ import annotations

import numpy as np

from pretrain.motion.clip import MotionClip

FASTEST = 12.0  # m/s of the root: a sprinter's record
FASTEST_TURN = 60.0  # rad/s of a body against its parent; of the default clips, the backflip's arms turn fastest, at 31


def doubts(clip: MotionClip) -> tuple[str, ...]:
    """What its importer warned of, and what makes it impossible."""
    return clip.warnings + impossible(clip)


def impossible(clip: MotionClip) -> tuple[str, ...]:
    """What no body can follow, with the frame in which it is worst; none of a clip that can be performed."""
    speed = np.linalg.norm(clip.states().root_vel, axis=-1)
    fast = (
        f"{clip.name}: the root moves at {speed.max():.1f} m/s in frame {speed.argmax()}; expected at most {FASTEST:g}"
    )
    turning = {
        body: _turning(rotations, clip.fps) for body, rotations in {"root": clip.root_rot, **clip.joint_rot}.items()
    }
    turns = (
        f"{clip.name}: {body} turns at {rate.max():.0f} rad/s in frame {rate.argmax()}; expected at most {FASTEST_TURN:g}"
        for body, rate in turning.items()
        if rate.max() > FASTEST_TURN
    )
    return (*((fast,) if speed.max() > FASTEST else ()), *turns)


def _turning(rotations: np.ndarray, fps: float) -> np.ndarray:
    """How fast quaternions (T, 4) turn from each to the next, (T - 1,) rad/s. Hinges' own rates grow without bound where
    the axes of a joint align."""
    cosine = np.abs((rotations[1:] * rotations[:-1]).sum(-1))
    return 2 * np.arccos(cosine.clip(0, 1)) * fps
