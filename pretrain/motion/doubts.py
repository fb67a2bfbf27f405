"""What speaks against a clip: motion that no body of this kind can follow. It is used all the same, and reported."""

from __future__ import annotations

import numpy as np

from pretrain.motion.clip import MotionClip

FASTEST = 12.0  # m/s of the root: a sprinter's record


def doubts(clip: MotionClip) -> tuple[str, ...]:
    """What its importer warned of, and the frame in which it is fastest if nobody is as fast; none of a clip that can be
    performed."""
    speed = _speed(clip)
    fast = (
        f"{clip.name}: the root moves at {speed.max():.1f} m/s in frame {speed.argmax()}; expected at most {FASTEST:g}"
    )
    return clip.warnings + ((fast,) if too_fast(clip) else ())


def too_fast(clip: MotionClip) -> bool:
    """Whether its root moves faster than anybody's does."""
    return bool(_speed(clip).max() > FASTEST)


def _speed(clip: MotionClip) -> np.ndarray:
    """Of the root in each frame, m/s."""
    return np.linalg.norm(clip.states().root_vel, axis=-1)
