"""Velocity ranges: how fast each clip moves and turns, averaged over about one gait cycle.

A style window of three frames hardly depends on speed: a body frozen in mid-stride is as near to a
walk as the walk is to its repetition. The velocity over a second tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.rotations import heading_direction, to_heading_frame
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary

AVERAGED_STEPS = 30  # control steps: 1 s, about one gait cycle
# Margin outside a clip's velocity range: a share of the clip's velocity, plus a constant.
RELATIVE_MARGIN = 0.1
MIN_MARGIN = (0.25, 0.25, 0.4)  # m/s forward, m/s left, rad/s


def level_velocity(state: CharacterState) -> Tensor:
    """Forward m/s, left m/s and turn rate rad/s in the heading frame: (...) -> (..., 3)."""
    heading = heading_direction(state.root_rot)
    planar = to_heading_frame(heading, state.root_vel)[..., :2]
    return torch.cat([planar, state.root_ang_vel[..., 2:]], -1)


def trailing_mean(velocity: Tensor, averaged: int = AVERAGED_STEPS) -> Tensor:
    """Mean over the last `averaged` steps, (T, ..., D) -> (T, ..., D). The first steps have the
    mean of the first `averaged`, or of all T if fewer."""
    steps = min(averaged, len(velocity))
    sums = torch.cat([torch.zeros_like(velocity[:1]), velocity.cumsum(0)])
    means = (sums[steps:] - sums[:-steps]) / steps  # (T - steps + 1, ..., D)
    return torch.cat([means[:1].expand(steps - 1, *means.shape[1:]), means])


@dataclass(frozen=True)
class VelocityRanges:
    """Minimum and maximum of each of C clips' trailing mean velocity, and the margin beyond them
    that still counts as the clip; columns as in `level_velocity`."""

    low: Tensor  # (C, 3)
    high: Tensor  # (C, 3)
    margin: Tensor  # (C, 3)

    def clamp(self, velocity: Tensor, clips: Tensor) -> Tensor:
        """The nearest velocities (N, 3) within the ranges of clips (N,)."""
        low = self.low.index_select(0, clips)
        return velocity.clamp(low, self.high.index_select(0, clips))

    def of(self, clips: Tensor) -> VelocityRanges:
        """The ranges of clips (N,), one per row."""
        return self.map(lambda x: x.index_select(0, clips))

    def map(self, change: Callable[[Tensor], Tensor]) -> VelocityRanges:
        """Apply `change` to all three."""
        return VelocityRanges(change(self.low), change(self.high), change(self.margin))

    def lerp(self, other: VelocityRanges, share: Tensor | float) -> VelocityRanges:
        """Interpolate from these (N, 3) to `other` (N, 3) by `share`, (N, 1) or a scalar."""
        low = torch.lerp(self.low, other.low, share)
        high = torch.lerp(self.high, other.high, share)
        return VelocityRanges(low, high, torch.lerp(self.margin, other.margin, share))

    def excess(self, velocity: Tensor, clips: Tensor) -> Tensor:
        """How far averaged velocities (N, 3) lie outside the ranges of clips (N,); see
        `row_excess`."""
        return self.of(clips).row_excess(velocity)

    def row_excess(self, velocity: Tensor) -> Tensor:
        """How far averaged velocities (N, 3) lie outside these N ranges, in margins, the largest of
        the three components, (N,). 0 inside."""
        below = self.low - velocity
        above = velocity - self.high
        return (torch.maximum(below, above).clamp_min(0) / self.margin).amax(-1)


def read_velocity_ranges(library: MotionLibrary) -> VelocityRanges:
    """The ranges of all clips of `library`."""
    lows: list[Tensor] = []
    highs: list[Tensor] = []
    for frames in library.clip_frames:
        means = trailing_mean(level_velocity(unflatten(frames)))
        lows.append(means.amin(0))
        highs.append(means.amax(0))
    low = torch.stack(lows)
    high = torch.stack(highs)
    fastest = torch.maximum(low.abs(), high.abs())
    # the margin is relative to the speed along a curved path, not to each component
    speed = fastest[:, :2].amax(-1, keepdim=True).expand(-1, 2)
    scale = torch.cat([speed, fastest[:, 2:]], -1)
    return VelocityRanges(low, high, torch.tensor(MIN_MARGIN) + RELATIVE_MARGIN * scale)


# Weight of the newest value in an exponential average with the mean age of a mean over
# AVERAGED_STEPS.
NEWEST_SHARE = 2 / (AVERAGED_STEPS + 1)


def average(mean: Tensor, velocity: Tensor) -> Tensor:
    """One control step of the exponential average, `mean` and `velocity` (N, 3) -> (N, 3)."""
    return torch.lerp(mean, velocity, NEWEST_SHARE)
