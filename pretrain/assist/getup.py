"""How firmly those who are down are led up (guide.py): a hand for each clip that rises, which lets go as they come to rise
along it by themselves.

Nobody gets up by chance: after 33 million samples 3 of a hundred did (docs/training-log.md). Led, the character meets the
states on the way up from the start, as those do who are held upright (curriculum.py). One hand for all let go of everybody
once those who lay face down came up, two thirds of all; who lay face up never learned to.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.assist.curriculum import GONE, MEMORY

OFTEN, SELDOM = 0.6, 0.5  # share of those who lay that come up: above, a hand weakens, and below it firms


class GetUpAssist:
    """A strength for each of C clips that characters may be led up along, and the record it follows from."""

    def __init__(self, strength: Tensor, rate: float = 0.0):
        self.strength = strength
        self.rate = rate  # share of its strength that a hand loses in one turn of the loop
        self.rose, self.stayed = torch.zeros_like(strength), torch.zeros_like(strength)

    def saw(self, clip: Tensor, rose: Tensor, stayed: Tensor) -> None:
        """One step of worlds led along `clip` (N,): of those who lay, who is up again (N,) bool, and who was down for too
        long (N,) bool."""
        self.rose.index_add_(0, clip, rose.float())
        self.stayed.index_add_(0, clip, stayed.float())

    @property
    def share(self) -> Tensor:
        """Of those who lay and were led along each clip, those who came up, (C,)."""
        return self.rose / (self.rose + self.stayed).clamp_min(1.0)

    def turn(self) -> None:
        """Once per turn of the learning loop."""
        weaker, firmer = self.strength * (1 - self.rate), (self.strength * (1 + self.rate)).clamp_max(1.0)
        strength = torch.where(self.share > OFTEN, weaker, self.strength)
        strength = torch.where((self.share < SELDOM) & (self.stayed >= 1), firmer, strength)
        self.strength = torch.where(strength < GONE, 0.0, strength)  # for good
        self.rose, self.stayed = MEMORY * self.rose, MEMORY * self.stayed

    def snapshot(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in ("strength", "rose", "stayed")}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        for name in ("strength", "rose", "stayed"):
            getattr(self, name).copy_(snapshot[name])  # runs of before had one hand for all
