"""How far the feet of each world are above or below those of its reference.

A step lifts a foot by 7 cm for a third of a second, which is hardly seen in a tracking error over
80 features: a policy that shuffles, with both feet on the ground, turns and steps aside nearly as
well by it. (The end effectors have a term of their own in DeepMimic, Peng et al. 2018, eq. 8.)
"""

from __future__ import annotations

from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.sim.features import foot_heights
from pretrain.sim.start_states import StartStates

FOOT_ERROR_UNIT = 0.05  # m, of the error: about the mean lift of a step


class FootTracker:
    """The foot heights of all reference states."""

    def __init__(self, skeleton: Skeleton, starts: StartStates):
        self._skeleton = skeleton
        self._heights = foot_heights(skeleton, starts.frames[:, -1]).contiguous()

    def error(self, frames: Tensor, rows: Tensor) -> Tensor:
        """Mean over the feet of how far those of style frames (N, F) are above or below the
        reference's, which is at `rows` (N,) of the start states, (N,) in FOOT_ERROR_UNIT."""
        heights = foot_heights(self._skeleton, frames)
        return (heights - self._heights.index_select(0, rows)).abs().mean(-1) / FOOT_ERROR_UNIT
