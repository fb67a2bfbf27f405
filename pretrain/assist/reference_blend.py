"""Blends a world's reference from one clip to the next after a change of skill.

Without a blend, the reference of a walk that is to stop would stand, so far from the character that
the imitation reward is flat. (Blending of motions as in animation graphs, linear and over a fixed
time.)"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.tensor_state import TensorState


class ReferenceBlend(TensorState):
    """The previous reference clip of N worlds, its phase (s), which advances, and the control steps
    left of the blend's `steps`. `durations` and `restart_times`, from which a clip that has ended
    continues, are those of the clips, (C,) s."""

    state_fields = ("clip", "phase", "left")

    def __init__(self, durations: Tensor, restart_times: Tensor, num_envs: int, steps: int):
        self.steps = steps
        self._durations = durations
        self._restart_times = restart_times
        self.clip = torch.zeros(num_envs, dtype=torch.long)
        self.phase = torch.zeros(num_envs)
        self.left = torch.zeros(num_envs)

    @property
    def share(self) -> Tensor:
        """Share of the new clip in the reference, (N,)."""
        return 1 - self.left / max(self.steps, 1)

    def end(self, ids: Tensor) -> None:
        """End the blend of worlds `ids` (n,)."""
        self.left[ids] = 0.0

    def begin(self, ids: Tensor, clips: Tensor, phases: Tensor, blends: Tensor) -> None:
        """Leave clips (n,) at `phases` (n,) s in worlds `ids` (n,), gradually where `blends` (n,)
        bool."""
        self.clip[ids] = clips
        self.phase[ids] = self._continue(clips, phases)
        self.left[ids] = torch.where(blends, float(self.steps), 0.0)

    def advance(self) -> None:
        """One control step."""
        self.left = (self.left - 1).clamp_min(0)
        self.phase = self._continue(self.clip, self.phase + 1 / CONTROL_RATE)

    def _continue(self, clips: Tensor, phases: Tensor) -> Tensor:
        """`phases` (n,) s in clips (n,); those beyond the end count from the restart time."""
        beyond = phases - self._durations[clips]
        return torch.where(beyond > 0, self._restart_times[clips] + beyond, phases)
