"""How the reference of a world goes over from one clip to the next after a change of skill.

At once, the reference of a walk that is to stop would stand: too far from the character for its
tracking reward to say in which direction to go. (Blending of motions as in animation graphs, linear
and over a fixed time.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.tensor_state import TensorState


class ReferenceBlend(TensorState):
    """Of N worlds, the clip that their reference comes from, its phase (s), which goes on, and the
    control steps that are left of the `steps` of the blend. `durations` are those of the clips,
    (C,) s."""

    state_fields = ("clip", "phase", "left")

    def __init__(self, durations: Tensor, num_envs: int, steps: int):
        self.steps = steps
        self._durations = durations
        self.clip = torch.zeros(num_envs, dtype=torch.long)
        self.phase = torch.zeros(num_envs)
        self.left = torch.zeros(num_envs)

    @property
    def share(self) -> Tensor:
        """Share of the new clip in the reference, (N,)."""
        return 1 - self.left / max(self.steps, 1)

    def end(self, ids: Tensor) -> None:
        """The references of worlds `ids` (n,) are in one clip."""
        self.left[ids] = 0.0

    def begin(self, ids: Tensor, clips: Tensor, phases: Tensor, blends: Tensor) -> None:
        """The references of worlds `ids` (n,) leave clips (n,) at `phases` (n,) s; gradually where
        it `blends` (n,) bool."""
        self.clip[ids] = clips
        self.phase[ids] = phases % self._durations[clips]
        self.left[ids] = torch.where(blends, float(self.steps), 0.0)

    def advance(self) -> None:
        """One control step. A clip that has ended begins again."""
        self.left = (self.left - 1).clamp_min(0)
        self.phase = (self.phase + 1 / CONTROL_RATE) % self._durations[self.clip]
