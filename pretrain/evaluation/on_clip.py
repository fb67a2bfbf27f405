"""On clip: whether a character does what a clip shows, in pose, in velocity and with its limbs.

Poses alone do not tell: frozen in mid-stride, a body is within tau of most walks.
"""

from __future__ import annotations

from torch import Tensor

from pretrain.evaluation.limb_speed import limb_speed
from pretrain.evaluation.setup import Setup
from pretrain.sim.velocity_range import trailing_mean


def on_clip(setup: Setup, target: int, windows: Tensor, velocity: Tensor) -> Tensor:
    """Of the last T control steps of n worlds: whether the style windows (T, n, W * F) are within
    tau of the clip, by its number in `Setup.targets`, the mean velocity of the second up to each
    is one of the clip's, and the limbs move as fast as the clip needs, (T, n) bool. `velocity` (T
    or more, n, 3) may begin earlier."""
    scaled = windows.flatten(0, 1) / setup.scale
    clip = setup.targets[target]
    near = clip.within(scaled).view(windows.shape[:2])
    moves = limb_speed(windows, setup.data.character.skeleton) >= clip.limb_speed
    means = trailing_mean(velocity)[-len(windows) :].flatten(0, 1)
    clips = setup.originals[target].expand(len(means))
    excess = setup.velocity_ranges.excess(means, clips).view(windows.shape[:2])
    return near & (excess <= 1) & moves
