"""Falls: how often a character goes down, with or without recovery."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.evaluation.intervals import Interval, rate_interval
from pretrain.evaluation.setup import RECOVERY_STEPS
from pretrain.motion.clip import CONTROL_RATE


class FallCounter:
    """Counts the falls and the watched steps of N worlds.

    A fall begins when a body not allowed by the present clip touches the ground, and lasts until
    the character is as high as that clip again. A broken simulation is also a fall. A world is
    watched until it has been down for more than 3 s or is broken: a character that stays down
    should add neither falls nor time."""

    def __init__(self, n: int):
        self.falls = torch.zeros(n)
        self.steps = torch.zeros(n)
        self._watched = torch.ones(n, dtype=torch.bool)

    def update(
        self, steps_down: Tensor, broken: Tensor, clip_changed: Tensor | None = None
    ) -> Tensor:
        """Update after a control step with the steps that each world has been down, (N,). Returns
        which began to fall, (N,) bool.

        Where `clip_changed` (N,) in this step, a character on the ground has not fallen: lying may
        have been allowed before."""
        began = (steps_down == 1) | broken
        if clip_changed is not None:
            began = began & (~clip_changed | broken)
        began = began & self._watched
        self.falls += began
        self.steps += self._watched
        self._watched = self._watched & (steps_down <= RECOVERY_STEPS) & ~broken
        return began

    def split(self, counts: list[int]) -> list[FallCounter]:
        """Split the worlds into consecutive groups of `counts`."""
        parts = [FallCounter(count) for count in counts]
        for name in ("falls", "steps", "_watched"):
            for part, values in zip(parts, getattr(self, name).split(counts), strict=True):
                setattr(part, name, values)
        return parts

    def per_minute(self, worlds: Tensor | slice = slice(None)) -> Interval:
        """Falls a minute over `worlds`; `exposure` is in minutes."""
        steps = self.steps[worlds]
        minutes = float(steps.sum()) / CONTROL_RATE / 60
        return rate_interval(int(self.falls[worlds].sum()), minutes, len(steps))
