"""GradientSteps: the number and size of the steps of a fit outside of the training loop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GradientSteps:
    steps: int
    lr: float  # the first, where the fit lowers it
    batch: int  # rows of a step
