"""A hand that holds the character upright while it learns to walk, and lets go as it learns.

Falls teach little: without it, 4.8 million samples brought episodes from 33 steps to 40 (docs/training.md). Held
upright, the character meets the clips' states from the start, and the hand weakens as long as episodes stay long.
(A virtual assistant as in Yu, Turk and Liu 2018, "Learning symmetric and low-energy locomotion", with a rule for letting go.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.rotations import rotate
from pretrain.characters.state import CharacterState

STIFFNESS = 800.0  # N m / rad; gravity topples a standing body of 50 kg with 440 N m / rad
DAMPING = 60.0  # N m s / rad


def upright_torque(state: CharacterState) -> Tensor:
    """Torque on the root, world frame, that turns its z axis up: (N,) states -> (N, 3) N m. It leaves the heading alone."""
    up = rotate(state.root_rot, torch.tensor([0.0, 0.0, 1.0]).expand_as(state.root_pos))
    lean = torch.stack([up[..., 1], -up[..., 0], torch.zeros_like(up[..., 0])], -1)  # up x z
    level = torch.tensor([1.0, 1.0, 0.0])
    return STIFFNESS * lean - DAMPING * state.root_ang_vel * level


@dataclass(frozen=True)
class LettingGo:
    """The rule: weaker while episodes are longer than `steps`, stronger again if they get much shorter."""

    steps: float
    rate: float  # share of its strength that the hand loses in one iteration

    def next(self, strength: float, episode_length: float) -> float:
        if strength < 0.01:
            return 0.0  # gone for good
        if episode_length > self.steps:
            return strength * (1 - self.rate)
        if episode_length < 0.6 * self.steps:
            return min(1.0, strength / (1 - self.rate))
        return strength
