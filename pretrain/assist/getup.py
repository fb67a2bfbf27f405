"""Get-up assistance: strength of the pull on worlds that are down, for each clip that rises.

Characters do not get up by exploration: after 33 million samples 3 % did. Pulled along a clip, they
visit the states on the way up from the start. Each clip has a strength, which decays as worlds rise
along it without help: a single strength decayed once characters that lay face down got up, two
thirds of all, and those that lay face up never learned to."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.assist.curriculum import ASSIST_RATE, RECORD_DECAY, change_strength
from pretrain.sim.tensor_state import TensorState

GETUP_START = 0.6  # first strength in clips that rise
LOWER_ABOVE = 0.6  # recovery rate above which an assistance weakens
RAISE_BELOW = 0.5  # recovery rate below which it grows


class GetUpAssist(TensorState):
    """A strength for each of C clips along which characters may be pulled up, and the record that
    sets it."""

    state_fields = ("strength", "recovered", "timed_out")

    def __init__(self, strength: Tensor, rate: float = ASSIST_RATE):
        self.strength = strength
        self.rate = rate  # share of its strength that an assistance loses in one iteration
        self.recovered = torch.zeros_like(strength)
        self.timed_out = torch.zeros_like(strength)

    def record(self, clip: Tensor, recovered: Tensor, timed_out: Tensor) -> None:
        """Count one step of worlds whose reference is in `clip` (N,): which have `recovered` (N,)
        bool, and which have `timed_out` on the ground (N,) bool."""
        self.recovered.index_add_(0, clip, recovered.float())
        self.timed_out.index_add_(0, clip, timed_out.float())

    @property
    def recovery_rate(self) -> Tensor:
        """Share of lying worlds that got up, by reference clip, (C,)."""
        return self.recovered / (self.recovered + self.timed_out).clamp_min(1.0)

    def step_schedule(self) -> None:
        """Once per iteration of the learning loop."""
        lower = self.recovery_rate > LOWER_ABOVE
        higher = (self.recovery_rate < RAISE_BELOW) & (self.timed_out >= 1)
        self.strength = change_strength(self.strength, self.rate, lower, higher)
        self.recovered = RECORD_DECAY * self.recovered
        self.timed_out = RECORD_DECAY * self.timed_out
