"""An objective whose gradients are not finite."""

from __future__ import annotations

from dataclasses import replace

import torch

from pretrain.rl.iteration import Objective
from pretrain.rl.rollout import Batch


def spoil_value_loss(objective: Objective) -> Objective:
    """`objective` with a loss of the value net that is NaN."""

    def loss(batch: Batch, rng: torch.Generator) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        total, metrics = objective.value.loss(batch, rng)
        return total * torch.nan, metrics

    return replace(objective, value=replace(objective.value, loss=loss))
