"""How far from its clip a skill may move. Where it strays further, the episode ends, as in a fall.

A skill that has slowed down, or stopped, is safe; far from its clip the style reward is flat, and nothing leads it back: the
run braked to walking speed and stayed there (docs/training-log.md). (Early termination as in DeepMimic, Peng et al. 2018,
section 7. What counts is the clip's nearest window; or, as there, the one that the world's clock points at: over 20 clips
that lie, flip and stand, whoever stands is near to some moment of every clip.)
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import vector_norm

from pretrain.ase.style import Demos
from pretrain.rl.rollout import Rollout
from pretrain.sim.blocks import row_blocks

# In units of the spread over all clips: a clip that varies less (a walk: 0.36) is taken to vary this much, for the noise of
# exploration alone puts a walk 0.5 away from its clip.
LEAST = 0.7


class TrackingTermination:
    """`length` is a root mean square over the features of a window, in units of their spread over all clips.

    A skill that has changed has `grace` control steps to come near. Once `timed`, what counts is the window at the reference's
    phase, not the nearest, in units of the clip's own spread, from LEAST to `liveliest` (holding a lively clip's mean pose has
    an error of 1), and a world that is too far has `lag` control steps to come back.
    """

    def __init__(
        self, demos: Demos, scale: Tensor, length: float, grace: int, lag: int, liveliest: float | None = None
    ):
        self.scale, self.grace, self.lag = scale, grace, lag
        self._windows, self._clip = demos.windows / scale, demos.clip
        parts = self._windows.split(demos.counts.tolist())
        self._mean = torch.stack([part.mean(0) for part in parts])
        spread = torch.stack([(part - part.mean(0)).square().mean().sqrt() for part in parts])
        self._lengths = {False: length * torch.ones_like(spread), True: length * spread.clamp(LEAST, liveliest)}
        self.timed = False

    @property
    def lengths(self) -> Tensor:
        """How far each clip lets one go, (C,)."""
        return self._lengths[self.timed]

    def distance(self, windows: Tensor, clips: Tensor) -> Tensor:
        """From windows (N, W * F) to the nearest window of clips (N,), (N,)."""
        found: list[Tensor] = []
        columns = len(self._windows)
        scaled = windows / self.scale
        for part, clip in zip(row_blocks(scaled, columns), row_blocks(clips, columns), strict=True):
            apart = torch.cdist(part, self._windows, compute_mode="use_mm_for_euclid_dist")
            found.append(apart.masked_fill(self._clip != clip[:, None], torch.inf).amin(1))
        return torch.cat(found) / windows.shape[-1] ** 0.5

    def from_mean(self, windows: Tensor, clips: Tensor) -> Tensor:
        """From windows (N, W * F) to the mean window of clips (N,), (N,): cheap, and as good from afar."""
        off = windows / self.scale - self._mean.index_select(0, clips)
        return vector_norm(off, dim=-1) / off.shape[-1] ** 0.5

    def strayed(self, windows: Tensor, clips: Tensor) -> Tensor:
        """Worlds that are further away, (N,) bool."""
        return self.distance(windows, clips) > self.lengths[clips]


def nearer_reward(rollout: Rollout) -> Tensor:
    """How much a step has brought the motion nearer to its clip's mean, in the leash's units.

    Style is flat from afar, where this is not; and as a difference of potentials it pays no cycle. (Ng, Harada and Russell
    1999.)
    """
    return rollout.extras["nearer"]
