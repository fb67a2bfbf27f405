"""Switch assistance: how strongly worlds whose skill has just changed are brought to the velocity
of the new one.

From a walk, a policy does not find how to stop: braking costs balance at first, and a walk that
goes on under the z of a stand is lost no sooner. A library of 12 clips switched among its walks and
among its stands, and not once between them (docs/training.md). Driven at the new clip's velocity
and held upright, worlds meet the states of a switch from the start. There is a strength for each
pair of clips, which decays as switches from the one to the other succeed: with one for each target,
easy switches from similar clips ended the assistance before the hard ones had succeeded once. It
falls to 0 within each switch, so that a switch has to end by itself. Only changes of skill that
change the velocity count.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.assist.curriculum import OFF_BELOW, change_strength
from pretrain.sim.tensor_state import TensorState

# Share of a pair's record that one iteration leaves: 1,280 worlds make some 60 switches in one, of
# 24 clips.
RECORD_DECAY = 0.99
# Share of the switches of a pair above which its assistance weakens, and below which it grows. With
# the noise of exploration, some 0.4 of the worlds that hold a clip pass for having arrived in it.
LOWER_ABOVE = 0.25
RAISE_BELOW = 0.12
MIN_SWITCHES = 4.0  # of a pair, weighted by age, for its record to count


class SwitchAssist(TensorState):
    """Which of N worlds are in a switch, and the strengths of the assistance for switches from each
    of C clips to each, at first `strength` (C,) of the target. A switch takes `period` control
    steps, and the assistance ends in the second half of them."""

    state_fields = ("strength", "successes", "switches", "source", "steps")

    def __init__(self, strength: Tensor, rate: float, num_envs: int, period: int):
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
        """Of the switches of each pair of clips, the share that succeeds, (C, C)."""
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
        """Of the assistance in worlds that follow clips (N,), (N,); 0 outside a switch."""
        if self.period == 0:
            return torch.zeros_like(self.strength[self.source, clips])
        left = (2 - 2 * self.steps / self.period).clamp(0, 1)
        return left * self.strength[self.source, clips]

    def record(self, clips: Tensor, failed: Tensor, arrived: Tensor) -> None:
        """One control step of worlds that follow clips (N,): of those in a switch, which `failed`
        (N,) bool, and which have `arrived` (N,) bool, as counts at its end."""
        switching = self.steps < self.period
        ended = switching & (failed | (self.steps + 1 == self.period))
        self.steps = torch.where(ended, self.period, self.steps + switching)
        succeeded = ended & arrived & ~failed
        pairs = (self.source, clips)
        self.switches.index_put_(pairs, ended.float(), accumulate=True)
        self.successes.index_put_(pairs, succeeded.float(), accumulate=True)

    def step_schedule(self, unassisted: Tensor) -> None:
        """Once per iteration of the learning loop. The assistance weakens for switches to
        `unassisted` (C,) bool clips only: that of the clip itself helps in a switch as well."""
        known = self.switches >= MIN_SWITCHES
        lower = known & (self.success > LOWER_ABOVE) & unassisted
        higher = known & (self.success < RAISE_BELOW)
        following = change_strength(self.strength, self.rate, lower, higher)
        self.strength = torch.where(self.strength < OFF_BELOW, 0.0, following)  # for good
        self.successes = RECORD_DECAY * self.successes
        self.switches = RECORD_DECAY * self.switches
