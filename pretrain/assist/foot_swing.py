"""Compares the lifted feet of reference and simulation, with a reward where they agree.

Steps on the spot barely affect a tracking error over 80 features: for a clip that turns on the
spot, its mean pose has an error of 0.4, steps 0.1 s early or late also 0.4, and exploration noise
alone 0.5, in units of the std over the clips. So a policy learns to slide on both feet. The lift
of the feet distinguishes these. (Rewards for the contacts of a gait's phases as in Siekmann et al.
2021, "Sim-to-real learning of all common bipedal gaits via periodic reward composition"; here the
phases are the reference's.)"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pretrain.characters.skeleton import Skeleton
from pretrain.rl.rollout import Rollout
from pretrain.sim.features import key_offsets
from pretrain.sim.start_states import StartStates

LIFTED = 0.04  # m above an ankle's height in a stand at which its foot is fully lifted
STEP = 0.5  # share of LIFTED above which a foot takes a step
STEP_MARGIN = 0.25  # s before and after a step that still count as stepping
STANDING = 0.05  # mean share of lifted feet up to which a clip has no steps to compare


class FootSwing:
    """How far each foot is lifted, from 0 on the ground to 1 in the air, in all reference states
    and in simulated ones. `stepping` (M,) are the reference rows near a step (`find_steps`)."""

    def __init__(self, skeleton: Skeleton, starts: StartStates):
        self._skeleton = skeleton
        heights = foot_heights(skeleton, starts.frames[:, -1])  # (M, feet)
        counts = starts.counts
        lowest = torch.stack([part.amin() for part in heights.split(counts.tolist())])
        self._standing = lowest.median()  # m
        above = heights - lowest.repeat_interleave(counts)[:, None]
        self._reference = _lifted(above)  # (M, feet)
        parts = self._reference.split(counts.tolist())
        margin = round(STEP_MARGIN * starts.rate)  # rows
        stepping = [find_steps(part, margin) for part in parts]
        self.stepping = torch.cat(stepping)  # (M,) bool
        # mean error of a standing body while the clip steps: over a whole clip with rests it would
        # be so small that a single step decides the return
        swing = torch.stack([part[rows].mean() for part, rows in zip(parts, stepping, strict=True)])
        error = torch.where(swing > STANDING, swing, 1.0)
        self._standing_error = error.repeat_interleave(counts)  # (M,)

    def match(self, frames: Tensor, rows: Tensor) -> Tensor:
        """How well the lifted feet of style frames (N, F) match those of reference rows (N,), (N,):
        1 where they agree; 0 on average for a body that stands while a clip steps, and down to
        1 - 1 / the mean swing of the clip's steps in a single row."""
        simulated = _lifted(foot_heights(self._skeleton, frames) - self._standing)
        error = (simulated - self._reference.index_select(0, rows)).abs().mean(-1)
        return 1 - error / self._standing_error.index_select(0, rows)


def find_steps(lifted: Tensor, margin: int) -> Tensor:
    """The rows of one clip, with feet `lifted` (n, feet), at most `margin` rows from a step, (n,)
    bool; all of them for a clip without steps."""
    step = (lifted.amax(-1) > STEP).float()
    near = functional.max_pool1d(step[None], 2 * margin + 1, stride=1, padding=margin)[0] > 0
    return near if near.any() else torch.ones_like(near)


def _lifted(above: Tensor) -> Tensor:
    """Heights above a stand's, m -> 0 to 1."""
    return (above / LIFTED).clamp(0, 1)


def foot_heights(skeleton: Skeleton, frames: Tensor) -> Tensor:
    """Heights of the ankles above the ground in style frames, (..., F) -> (..., feet) m."""
    feet = [skeleton.key_bodies.index(foot) for foot in skeleton.feet]
    return frames[..., :1] + key_offsets(skeleton, frames)[..., feet, 2]


def foot_reward(rollout: Rollout) -> Tensor:
    """`FootSwing.match` of every step."""
    return rollout.extras["foot_match"]
