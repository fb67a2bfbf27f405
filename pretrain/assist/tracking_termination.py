"""Early termination by the tracking error: as in a fall, an episode ends where the motion is too
far from its clip.

A policy that slows down or stops does not fall, and far from its clip the style reward is flat: the
running skill slowed to walking speed and stayed there (docs/training.md). (Early termination as in
DeepMimic, Peng et al. 2018, section 7. At first the error is the distance to the clip's nearest
window; once phase-locked it is, as in DeepMimic, the distance to the window at the reference's
phase: with 20 clips that lie, flip and stand, a standing body is near some window of every
clip.)"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.ase.reference_windows import ReferenceWindows
from pretrain.assist.curriculum import Curriculum
from pretrain.rl.rollout import Rollout
from pretrain.sim.nearest import NearestRows
from pretrain.sim.stored_windows import window_error
from pretrain.sim.tensor_state import TensorState

# The distance to all windows costs as much as a tenth of a step, so each world is checked every
# CHECK_EVERY steps.
CHECK_EVERY = 3  # control steps
NEAR_VELOCITY = 1.5  # margins outside a clip's velocities that count as near, under exploration


@dataclass(frozen=True)
class TrackingLimits:
    """`max_error` is a root mean square over the features of a window, in units of their std
    over all clips."""

    max_error: float
    grace_period: int  # control steps to come near after a change of skill
    # margins by which the average velocity may lie outside the clip's range; None: unbounded
    max_velocity_excess: float | None = None
    # control steps that a phase-locked world may exceed the limit after a step within it
    recovery_window: int = 15
    # The limit of a clip of large std, as a flip, is its std times this factor, if larger.
    std_factor: float = 1.25


def read_clip_stds(demos: ReferenceWindows, scale: Tensor) -> Tensor:
    """The std of each clip's windows about their mean, root mean square over the features, in
    units of `scale` (W * F), (C,)."""
    parts = (demos.windows / scale).split(demos.counts.tolist())
    return torch.stack([(part - part.mean(0)).square().mean().sqrt() for part in parts])


class TrackingTermination(TensorState):
    """Which of N worlds have exceeded the error limit of their clip for too long.

    Holding the mean pose of a clip has the clip's std as error. In units of a body that is 2 cm
    and 0.05 rad off (`small_error`) this is 2.2 to 4 for a walk and 10 for a flip; exploration
    noise alone gives a walk 1.5.
    """

    state_fields = ("grace_steps",)

    def __init__(
        self,
        demos: ReferenceWindows,
        scale: Tensor,
        limits: TrackingLimits,
        curriculum: Curriculum,
        num_envs: int,
    ):
        self.limits = limits
        self._curriculum = curriculum
        self.scale = scale  # (W * F,) std of the features over all clips
        scaled = demos.windows / scale
        self._nearest = NearestRows(scaled, demos.counts)
        self._mean = torch.stack([part.mean(0) for part in scaled.split(demos.counts.tolist())])
        std = read_clip_stds(demos, scale)
        # (C,), in units of `scale`
        self.max_errors = (limits.std_factor * std).clamp_min(limits.max_error)
        # control steps left to exceed the limit
        self.grace_steps = torch.zeros(num_envs, dtype=torch.long)

    @property
    def phase_locked(self) -> Tensor:
        """Clips whose error is measured at the phase of the reference, (C,) bool."""
        # Balance is learned first, near any phase of the clip.
        return self._curriculum.assist_strength == 0

    def share_of_limit(self, error: Tensor, clips: Tensor) -> Tensor:
        """Tracking errors (N,) under clips (N,), in units of the clips' limits, (N,)."""
        return error / self.max_errors[clips]

    @property
    def grace_share(self) -> Tensor:
        """The grace steps left over the longest grace period, (N,), 0 to 1."""
        return self.grace_steps / max(self.limits.grace_period, self.limits.recovery_window)

    def start(self, ids: Tensor, away: Tensor) -> None:
        """Episodes of worlds `ids` (n,) begin; those `away` (n,) bool from the clip of their skill
        have the grace period."""
        self.grace_steps[ids] = torch.where(away, self.limits.grace_period, 0)

    def change_skill(self, changed: Tensor) -> None:
        """Worlds whose clip has `changed` (N,) bool have the grace period."""
        self.grace_steps = torch.where(changed, self.limits.grace_period, self.grace_steps)

    def exceeds_velocity_bound(self, velocity_excess: Tensor) -> Tensor:
        """Worlds whose velocity excess (N,) is over its limit, (N,) bool."""
        most = self.limits.max_velocity_excess
        return velocity_excess > (torch.inf if most is None else most)

    def is_near(self, error: Tensor, velocity_excess: Tensor) -> Tensor:
        """Worlds within the limit of the tracking `error` (N,), in units of it, and near the clip's
        velocity, (N,) bool."""
        return (error <= 1) & (velocity_excess <= NEAR_VELOCITY)

    def exceeded_at_phase(self, error: Tensor, clips: Tensor, down: Tensor) -> Tensor:
        """Count one step at tracking `error` (N,), in units of its limit, of worlds that follow
        clips (N,). Returns those in phase-locked clips that have exceeded the limit for too long,
        (N,) bool, except worlds that are `down` (N,) bool.

        The grace steps allow for the jolt of a landing, for the jump from a kick's end to its
        beginning, and for regaining balance."""
        locked = self.phase_locked[clips]
        within = (error <= 1) | down
        least = torch.where(within, self.limits.recovery_window, -1)
        left = torch.maximum(self.grace_steps - 1, least)
        self.grace_steps = torch.where(locked, left, self.grace_steps)
        return locked & (left < 0)

    def exceeded_nearest(self, windows: Tensor, clips: Tensor, checked: Tensor) -> Tensor:
        """Count one step of worlds that follow clips (N,). Returns those `checked` (N,) bool, in
        clips that are not phase-locked and after the grace period, that are further from the clip's
        nearest window than its limit, (N,) bool. `windows` are (N, W * F)."""
        locked = self.phase_locked[clips]
        self.grace_steps = torch.where(
            locked, self.grace_steps, (self.grace_steps - 1).clamp_min(0)
        )
        due = (checked & ~locked & (self.grace_steps == 0)).nonzero()[:, 0]
        exceeded = torch.zeros(len(clips), dtype=torch.bool)
        exceeded[due] = self.share_of_limit(self.distance(windows[due], clips[due]), clips[due]) > 1
        return exceeded

    def distance(self, windows: Tensor, clips: Tensor) -> Tensor:
        """From windows (N, W * F) to the nearest window of clips (N,), (N,), in units of
        `scale`."""
        nearest = self._nearest.find(windows / self.scale, clips)
        return window_error(windows, self.scale, self._nearest.rows, nearest)

    def distance_to_mean(self, windows: Tensor, clips: Tensor) -> Tensor:
        """From windows (N, W * F) to the mean window of clips (N,), (N,), in units of `scale`:
        cheap, and as good at large distances."""
        return window_error(windows, self.scale, self._mean, clips)


def nearer_reward(rollout: Rollout) -> Tensor:
    """Decrease of `distance_to_mean` in a step.

    Far from the clip, style and imitation reward are flat and this is not: without it the run of
    `mobility` still falls after 38 M samples. It is the shaping of Ng, Harada and Russell 1999
    for a discount of 1: at gamma it equals theirs less (1 - gamma) times the distance, so that it
    also rewards being near."""
    return rollout.extras["nearer"]
