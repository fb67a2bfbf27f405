"""A curriculum over clips: an assistance that decays as each clip is learned, and more episodes in
clips that fall early.

Falls carry little signal: without assistance, 4.8 million samples brought episodes from 33 steps to
40. With assistance, characters visit the clips' states from the start; it decays per clip as
episodes that begin there stay long. (A virtual assistant as in Yu, Turk and Liu 2018,
"Learning symmetric and low-energy locomotion", with a rule for the decay.) The forces are in
assist/forces.py."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.sim.tensor_state import TensorState

RECORD_DECAY = 0.9  # share of a clip's record kept per iteration
MASTERED_STEPS = 150.0  # control steps between failures at which a clip counts as mastered
PROGRESS_RATE = 0.02  # share by which the progress approaches its present value per iteration
OFF_BELOW = 0.01  # strength below which an assistance ends permanently
RAISE_BELOW = 0.6  # share of `steps` below which the assistance grows
ASSIST_RATE = 0.0125  # share of its strength that an assistance loses in one iteration


@dataclass(frozen=True)
class AssistSchedule:
    """Weakens the assistance while there are over `steps` control steps between failures and the
    feet are lifted as in the clip; strengthens it below RAISE_BELOW of `steps`."""

    start: float  # first strength
    steps: float = 60.0
    rate: float = ASSIST_RATE
    min_foot_match: float | None = None  # see `FootSwing.match`; None: the feet do not count

    def next(self, strength: Tensor, between: Tensor, foot_match: Tensor) -> Tensor:
        """Strengths, steps between failures and mean foot matches (C,) -> strengths (C,)."""
        lower = between > self.steps
        if self.min_foot_match is not None:
            lower = lower & (foot_match >= self.min_foot_match)
        higher = between < RAISE_BELOW * self.steps
        return change_strength(strength, self.rate, lower, higher)


def change_strength(strength: Tensor, rate: float, lower: Tensor, higher: Tensor) -> Tensor:
    """Strengths (C,) of an assistance, changed by the share `rate` where `lower` or `higher` (C,)
    bool; at most 1, and permanently 0 below OFF_BELOW."""
    weaker = strength * (1 - rate)
    stronger = (strength * (1 + rate)).clamp_max(1.0)
    following = torch.where(higher, stronger, torch.where(lower, weaker, strength))
    return torch.where(strength < OFF_BELOW, 0.0, following)


NO_ASSIST = AssistSchedule(start=0.0)


@dataclass(frozen=True)
class NearLatents:
    """Share of an episode's first latents, other than clips' own, drawn nearest to the clip it
    begins in."""

    prob: float
    # until that clip is unassisted with more than this many control steps between failures
    steps: float = 200.0
    after: float = 0.75  # share of `prob` after that


NO_NEAR_LATENTS = NearLatents(prob=0.0)


class Curriculum(TensorState):
    """Records how long episodes from each of C clips last, and sets the clips' assistance and
    weights from that.

    `included` (C,) bool are the clips that are assisted and focused on; None: all. `focus` bounds
    the factor by which a clip's weight grows or shrinks; 1 keeps the weights."""

    state_fields = ("assist_strength", "steps", "failures", "progress", "matched", "compared")

    def __init__(
        self,
        weights: Tensor,
        *,
        episode_length: int,
        schedule: AssistSchedule = NO_ASSIST,
        focus: float = 1.0,
        included: Tensor | None = None,
        near: NearLatents = NO_NEAR_LATENTS,
    ):
        self.schedule = schedule
        self.near = near
        self.focus = focus
        self.episode_length = episode_length
        self.base = weights
        self.included = torch.ones_like(weights, dtype=torch.bool) if included is None else included
        self.assist_strength = schedule.start * self.included  # (C,)
        self.steps = torch.zeros_like(weights)
        self.failures = torch.zeros_like(weights)
        self.matched = torch.zeros_like(weights)  # sum of the foot matches of `compared` steps
        self.compared = torch.zeros_like(weights)
        self.progress = torch.zeros(())  # 0 to 1, smoothed

    @property
    def steps_between_failures(self) -> Tensor:
        """Steps between failures in episodes begun in each clip, (C,). No failure counts as 0.5, no
        steps as `episode_length`."""
        return torch.where(
            self.steps > 0, self.steps / self.failures.clamp_min(0.5), float(self.episode_length)
        )

    @property
    def foot_match(self) -> Tensor:
        """Mean foot match under each clip's own latent, near its steps, (C,); 0 where none was
        recorded."""
        return self.matched / self.compared.clamp_min(1.0)

    def near_probs(self) -> Tensor:
        """The share of latents near each clip, (C,)."""
        mastered = (self.assist_strength == 0) & (self.steps_between_failures > self.near.steps)
        return self.near.prob * torch.where(mastered, self.near.after, 1.0)

    @property
    def weights(self) -> Tensor:
        """Probability of beginning in each clip, (C,) sum 1."""
        if not self.steps.any():
            return self.base
        need = (self.episode_length / self.steps_between_failures.clamp_min(1.0)).clamp(
            1 / self.focus, self.focus
        )
        # An assisted clip is not learned yet, however long its episodes are.
        need = torch.where(self.assist_strength > 0, need.clamp_min(1.0), need)
        need = torch.where(self.included, need, 1.0)
        return self.base * need / (self.base * need).sum()

    def record(self, clip: Tensor, failed: Tensor) -> None:
        """One step of worlds whose episodes began in `clip` (N,), and which of them `failed`
        (N,) bool: fell or exceeded their tracking error."""
        self.steps.index_add_(0, clip, torch.ones(len(clip)))
        self.failures.index_add_(0, clip, failed.float())

    def record_foot_match(self, clip: Tensor, match: Tensor) -> None:
        """One step of worlds under the latents of clips (n,), and their foot `match` (n,)."""
        self.matched.index_add_(0, clip, match)
        self.compared.index_add_(0, clip, torch.ones_like(match))

    def step_schedule(self) -> None:
        """Once per iteration of the learning loop."""
        self.assist_strength = self.schedule.next(
            self.assist_strength, self.steps_between_failures, self.foot_match
        )
        self.progress = torch.lerp(self.progress, self.measure_progress(), PROGRESS_RATE)
        self.steps = RECORD_DECAY * self.steps
        self.failures = RECORD_DECAY * self.failures
        self.matched = RECORD_DECAY * self.matched
        self.compared = RECORD_DECAY * self.compared

    def measure_progress(self) -> Tensor:
        """Mean over the clips, each from 0, fully assisted or falling at once, to 1, mastered
        without assistance."""
        unassisted = 1 - self.assist_strength.clamp_max(1.0)
        mastery = unassisted * (self.steps_between_failures / MASTERED_STEPS).clamp_max(1.0)
        return mastery[self.included].mean() if self.included.any() else torch.ones(())
