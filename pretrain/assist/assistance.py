"""Assistance of whole clips, of getting up, and of switches."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pretrain.assist.curriculum import Curriculum
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.switch_assist import SwitchAssist


@dataclass(frozen=True)
class Assistance:
    """Strengths of the forces in assist/forces.py, for each of C clips, and the records that set
    them."""

    curriculum: Curriculum
    getup: GetUpAssist
    switches: SwitchAssist

    @property
    def is_active(self) -> bool:
        """Whether any strength is above 0."""
        strengths = (
            self.curriculum.assist_strength,
            self.getup.strength,
            self.switches.strength,
        )
        return any(bool(strength.any()) for strength in strengths)

    def begin_unassisted(self, clips: Tensor) -> None:
        """Mark `clips` (C,) bool as learned at the start: remove their assistance and update the
        progress. The assistance of switches is unchanged."""
        self.curriculum.assist_strength[clips] = 0.0
        self.curriculum.progress = self.curriculum.measure_progress()
        self.getup.strength[clips] = 0.0

    def step_schedule(self) -> None:
        """Once per iteration of the learning loop."""
        self.curriculum.step_schedule()
        self.getup.step_schedule()
        self.switches.step_schedule(self.curriculum.assist_strength == 0)
