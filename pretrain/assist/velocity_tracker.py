"""The average velocity of each world, and how far it is outside the range of its reference.

Poses alone let a character stand in mid-stride under a walk: at any phase of a walk, a good
standing pose is within the limit of the tracking error, which exploration noise requires. With 30
clips, walks and runs ended standing."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.assist.reference_blend import ReferenceBlend
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import ALL, Rows
from pretrain.sim.tensor_state import TensorState
from pretrain.sim.velocity_range import (
    NEWEST_SHARE,
    VelocityRanges,
    average,
    level_velocity,
    read_velocity_ranges,
)


class VelocityTracker(TensorState):
    """Forward, left and yaw velocity of N worlds, averaged over about a second, and the ranges of
    their references, which are averaged alike. An episode begins at the velocity of its clip."""

    state_fields = ("mean", "low", "high", "margin")

    def __init__(self, library: MotionLibrary, num_envs: int):
        self._ranges = read_velocity_ranges(library)
        self.mean = torch.zeros(num_envs, 3)
        self.low = torch.zeros(num_envs, 3)
        self.high = torch.zeros(num_envs, 3)
        self.margin = torch.ones(num_envs, 3)

    @property
    def ranges(self) -> VelocityRanges:
        """Of the references, (N, 3) each."""
        return VelocityRanges(self.low, self.high, self.margin)

    def start(self, ids: Tensor, clips: Tensor, state: CharacterState) -> None:
        """Worlds `ids` (n,) begin in clips (n,) in `state` (n,)."""
        self.mean[ids] = self._ranges.clamp(level_velocity(state), clips)
        self.follow(clips, ids)

    def follow(self, clips: Tensor, ids: Rows = ALL) -> None:
        """Set the ranges of worlds `ids` (n,) to those of clips (n,)."""
        ranges = self._ranges.of(clips)
        self.low[ids] = ranges.low
        self.high[ids] = ranges.high
        self.margin[ids] = ranges.margin

    def advance(self, state: CharacterState, clips: Tensor, blend: ReferenceBlend) -> None:
        """Advance one control step to `state` (N,), along clips (N,); `blend` moves the ranges to
        these clips. Without a blend the ranges change at once."""
        self.mean = average(self.mean, level_velocity(state))
        reference = self._ranges.of(clips)
        if blend.steps:
            previous = self._ranges.of(blend.clip)
            reference = previous.lerp(reference, blend.share[:, None])
            reference = self.ranges.lerp(reference, NEWEST_SHARE)
        self.low = reference.low
        self.high = reference.high
        self.margin = reference.margin

    def excess(self, ids: Rows = ALL) -> Tensor:
        """How far worlds `ids` (n,) are outside the velocities of their references, in margins,
        (n,)."""
        ranges = self.ranges.map(lambda x: x[ids])
        return ranges.row_excess(self.mean[ids])

    def distance(self, clips: Tensor, ids: Rows = ALL) -> Tensor:
        """How far worlds `ids` (n,) are outside the velocities of clips (n,), in margins, (n,)."""
        return self._ranges.excess(self.mean[ids], clips)
