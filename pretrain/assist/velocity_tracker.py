"""The average velocity of each world, and how far it is outside the range of its clip.

Poses alone let a character stand in mid-stride under a walk: at any phase of a walk a good standing
pose is nearer than the limit of the tracking error, which the noise of exploration needs. Of 30
clips, walks and runs ended standing (docs/training.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import ALL, Rows
from pretrain.sim.tensor_state import TensorState
from pretrain.sim.velocity_range import average, level_velocity, read_velocity_ranges


class VelocityTracker(TensorState):
    """Forward, left and yaw velocity of N worlds, averaged over about a second. An episode begins
    at the velocity of its clip."""

    state_fields = ("mean",)

    def __init__(self, library: MotionLibrary, num_envs: int):
        self._ranges = read_velocity_ranges(library)
        self.mean = torch.zeros(num_envs, 3)

    def start(self, ids: Tensor, clips: Tensor, state: CharacterState) -> None:
        """Worlds `ids` (n,) begin in clips (n,) in `state` (n,)."""
        self.mean[ids] = self._ranges.clamp(level_velocity(state), clips)

    def advance(self, state: CharacterState) -> None:
        """One control step, after which the worlds are in `state` (N,)."""
        self.mean = average(self.mean, level_velocity(state))

    def excess(self, clips: Tensor, ids: Rows = ALL) -> Tensor:
        """How far worlds `ids` (n,) are outside the velocities of clips (n,), in margins, (n,)."""
        return self._ranges.excess(self.mean[ids], clips)
