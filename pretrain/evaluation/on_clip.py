"""On clip: whether a character matches a clip in pose, velocity and limb speed.

Poses alone do not suffice: frozen in mid-stride, a body is within tau of most walks."""

from __future__ import annotations

from torch import Tensor

from pretrain.evaluation.limb_speed import limb_speed
from pretrain.evaluation.setup import Setup
from pretrain.sim.velocity_range import trailing_mean


def on_clip(setup: Setup, target: int, windows: Tensor, velocity: Tensor) -> Tensor:
    """Whether n worlds are on clip `target` of `Setup.targets` in the last T control steps, (T, n)
    bool: the style windows (T, n, W * F) are within tau, the mean velocity of the last second is in
    the clip's range, and the limbs are fast enough. `velocity` (T or more, n, 3) may begin
    earlier."""
    scaled = windows.flatten(0, 1) / setup.scale
    clip = setup.targets[target]
    near = clip.within(scaled).view(windows.shape[:2])
    moves = limb_speed(windows, setup.data.character.skeleton) >= clip.limb_speed
    means = trailing_mean(velocity)[-len(windows) :].flatten(0, 1)
    clips = setup.originals[target].expand(len(means))
    excess = setup.velocity_ranges.excess(means, clips).view(windows.shape[:2])
    return near & (excess <= 1) & moves
