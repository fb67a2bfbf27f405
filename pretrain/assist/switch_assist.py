"""Switch assistance: strength of the forces that bring a world to the velocity of its new skill.

A policy does not find by exploration how to stop from a walk: braking costs balance at first, and a
walk that continues under the z of a stand is terminated no sooner. A library of 12 clips switched
among its walks and among its stands, but never between them (docs/training.md). Driven at the new
clip's velocity and held upright, worlds visit the states of a switch from the start. Each pair of
clips has a strength, which decays as its switches succeed: with one per target, easy switches from
similar clips ended the assistance before the hard ones had succeeded once. The force falls to 0
within each switch, which thus has to end without help. Only changes of skill that change the
velocity count."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.assist.curriculum import ASSIST_RATE, change_strength
from pretrain.sim.tensor_state import TensorState

# Share of a pair's record kept per iteration; 1,280 worlds with 24 clips make some 60 switches in
# one.
RECORD_DECAY = 0.99
# Success share of a pair above which its assistance weakens, and below which it grows. With
# exploration noise, some 0.4 of the worlds that hold a clip count as arrived.
LOWER_ABOVE = 0.25
RAISE_BELOW = 0.12
MIN_SWITCHES = 4.0  # of a pair, weighted by age, for its record to count


class SwitchAssist(TensorState):
    """Records which of N worlds are in a switch, and sets the strength for each pair of C clips, at
    first `strength` (C,) of the target. A switch takes `period` control steps; the assistance falls
    to 0 over the second half of them."""

    state_fields = ("strength", "successes", "switches", "source", "steps")

    def __init__(self, strength: Tensor, num_envs: int, period: int, rate: float = ASSIST_RATE):
        self.period = period
        self.rate = rate  # share of its strength that an assistance loses in one iteration
        self.strength = strength.expand(len(strength), -1).clone()  # (C, C): source, target
        self.enabled = bool(strength.any())
        self.successes = torch.zeros_like(self.strength)
        self.switches = torch.zeros_like(self.strength)
        self.source = torch.zeros(num_envs, dtype=torch.long)  # clips
        # control steps since the switch began, `period` where it is over
        self.steps = torch.full((num_envs,), period)

    @property
    def success(self) -> Tensor:
        """Share of the switches that succeed, by pair of clips, (C, C)."""
        return self.successes / self.switches.clamp_min(1.0)

    def start(self, ids: Tensor, sources: Tensor, away: Tensor) -> None:
        """Episodes of worlds `ids` (n,) begin in clips `sources` (n,); those `away` (n,) bool from
        the velocity of their skill begin with a switch."""
        self.source[ids] = sources
        self.steps[ids] = torch.where(away, 0, self.period)

    def change_skill(self, changed: Tensor, sources: Tensor, away: Tensor) -> None:
        """Worlds whose clip has `changed` (N,) bool from `sources` (N,) begin a switch if they are
        `away` (N,) bool from the velocity of the new one, and are in none otherwise."""
        begun = torch.where(away, 0, self.period)
        self.source = torch.where(changed, sources, self.source)
        self.steps = torch.where(changed, begun, self.steps)

    def strengths(self, clips: Tensor) -> Tensor:
        """Strengths in worlds that follow clips (N,), (N,); 0 outside a switch."""
        left = (2 - 2 * self.steps / self.period).clamp(0, 1)
        return left * self.strength[self.source, clips]

    def record(self, clips: Tensor, failed: Tensor, arrived: Tensor) -> None:
        """Count one control step of worlds that follow clips (N,). A switch that `failed` (N,) bool
        ends; one that has `arrived` (N,) bool at the end of its period succeeds."""
        switching = self.steps < self.period
        ended = switching & (failed | (self.steps + 1 == self.period))
        self.steps = torch.where(ended, self.period, self.steps + switching)
        succeeded = ended & arrived & ~failed
        pairs = (self.source, clips)
        self.switches.index_put_(pairs, ended.float(), accumulate=True)
        self.successes.index_put_(pairs, succeeded.float(), accumulate=True)

    def step_schedule(self, unassisted: Tensor) -> None:
        """Once per iteration of the learning loop. The assistance weakens for switches to
        `unassisted` (C,) bool clips only: a clip's own assistance also helps in a switch."""
        known = self.switches >= MIN_SWITCHES
        lower = known & (self.success > LOWER_ABOVE) & unassisted
        higher = known & (self.success < RAISE_BELOW)
        self.strength = change_strength(self.strength, self.rate, lower, higher)
        self.successes = RECORD_DECAY * self.successes
        self.switches = RECORD_DECAY * self.switches
