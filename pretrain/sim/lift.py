"""How firmly those who are down are led up (guide.py): a hand that lets go as they come to rise by themselves.

Nobody gets up by chance: after 33 million samples 3 of a hundred did (docs/training-log.md). Led, the character meets the
states on the way up from the start, as those do who are held upright (curriculum.py).
"""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.sim.curriculum import MEMORY

OFTEN, SELDOM = 0.5, 0.3  # share of those who lay that come up: above, the hand weakens, and below it firms
GONE = 0.01


class Lift:
    """One strength for all, and the record it follows from."""

    def __init__(self, start: float = 0.0, rate: float = 0.0):
        self.rate = rate  # share of its strength that the hand loses in one turn of the loop
        self.strength = torch.tensor(start)
        self.rose, self.stayed = torch.zeros(()), torch.zeros(())

    def saw(self, rose: Tensor, stayed: Tensor) -> None:
        """One step: of those who lay, who is up again (N,) bool, and who was down for too long (N,) bool."""
        self.rose += rose.sum()
        self.stayed += stayed.sum()

    @property
    def share(self) -> float:
        """Of those who lay, those who came up."""
        return float(self.rose / (self.rose + self.stayed).clamp_min(1.0))

    def turn(self) -> None:
        """Once per turn of the learning loop."""
        if self.share > OFTEN:
            self.strength *= 1 - self.rate
        elif self.share < SELDOM and self.stayed >= 1:
            self.strength = (self.strength * (1 + self.rate)).clamp_max(1.0)
        if self.strength < GONE:
            self.strength = torch.zeros(())  # for good
        self.rose, self.stayed = MEMORY * self.rose, MEMORY * self.stayed

    def snapshot(self) -> dict[str, Tensor]:
        return {name: getattr(self, name).clone() for name in ("strength", "rose", "stayed")}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        for name in ("strength", "rose", "stayed"):
            setattr(self, name, snapshot[name].clone())
