"""Which feet are in the air, in the reference and in the simulation, and a reward where they agree.

Steps on the spot hardly show in a tracking error over 80 features: the mean pose of a clip that
turns on the spot is 0.4 from it, steps that are a tenth of a second early or late 0.4, too, and the
noise of exploration alone 0.5, in units of the spread over the clips. So a policy learns to slide
on both feet. Whether a foot is lifted does tell them apart. (Rewards for the contacts of a gait's
phases as in Siekmann et al. 2021, "Sim-to-real learning of all common bipedal gaits via periodic
reward composition"; here the phases are the reference's.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.rl.rollout import Rollout
from pretrain.sim.start_states import StartStates

LIFTED = 0.04  # m of an ankle above its height in a stand, from which on its foot counts as lifted
STEPPING = 0.05  # mean share of its feet that a clip lifts, from which on it steps


class FootSwing:
    """How far each foot is lifted, from 0 on the ground to 1 in the air, in all reference states
    and in simulated ones."""

    def __init__(self, skeleton: Skeleton, starts: StartStates):
        self._skeleton = skeleton
        heights = foot_heights(skeleton, starts.frames[:, -1])  # (M, feet)
        counts = starts.counts
        lowest = torch.stack([part.amin() for part in heights.split(counts.tolist())])
        self._standing = lowest.median()  # m
        above = heights - lowest.repeat_interleave(counts)[:, None]
        self._reference = _lifted(above)  # (M, feet)
        swing = torch.stack([part.mean() for part in self._reference.split(counts.tolist())])
        # what standing differs by from the clip, on average
        error = torch.where(swing > STEPPING, swing, 1.0)
        self._standing_error = error.repeat_interleave(counts)  # (M,)

    def match(self, frames: Tensor, rows: Tensor) -> Tensor:
        """How well the feet of style frames (N, F) are lifted when those of reference rows (N,)
        are, (N,): 1 where they agree; over a whole clip that steps, 0 for a body that stands."""
        simulated = _lifted(foot_heights(self._skeleton, frames) - self._standing)
        error = (simulated - self._reference.index_select(0, rows)).abs().mean(-1)
        return 1 - error / self._standing_error.index_select(0, rows)


def _lifted(above: Tensor) -> Tensor:
    """Heights above those of a stand, m, to 0 to 1."""
    return (above / LIFTED).clamp(0, 1)


def foot_heights(skeleton: Skeleton, frames: Tensor) -> Tensor:
    """Heights of the ankles above the ground in style frames, (..., F) -> (..., feet) m."""
    first = frames.shape[-1] - 3 * len(skeleton.key_bodies)
    upwards = [first + 3 * skeleton.key_bodies.index(foot) + 2 for foot in skeleton.feet]
    return frames[..., :1] + frames[..., upwards]


def foot_reward(rollout: Rollout) -> Tensor:
    """`FootSwing.match` of every step."""
    return rollout.extras["foot_match"]
