"""What speaks against a clip: motion that no body of this kind can follow. It is used all the same, and reported."""

from __future__ import annotations

import numpy as np

from pretrain.characters.kinematics import lowest_point
from pretrain.motion.clip import MotionClip

FASTEST = 12.0  # m/s of the root: a sprinter's record
DEEPEST = 0.15  # m below the ground; captured feet sink in by up to half of that


def doubts(clip: MotionClip) -> tuple[str, ...]:
    """One line for each thing, with the worst frame; none of a clip that can be performed."""
    states = clip.states()
    measured = (
        (np.linalg.norm(states.root_vel, axis=-1), FASTEST, "the root moves at {:.1f} m/s"),
        (-lowest_point(clip.skeleton, states), DEEPEST, "the body is {:.2f} m below the ground"),
    )
    return tuple(
        f"{clip.name}: {text.format(values.max())} in frame {values.argmax()}; expected at most {limit:g}"
        for values, limit, text in measured
        if values.max() > limit
    )
