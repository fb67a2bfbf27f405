"""A loss that draws mean actions to others in the batch: a reference's, a neighbor's or those of
another policy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pretrain.rl.ppo import Metrics, Surrogate
from pretrain.rl.rollout import Batch


@dataclass(frozen=True)
class ActionTarget:
    """Which entries of a batch hold the target, and the metric's name."""

    action: str  # (n, A)
    share: str  # (n,) weight of each row, 0 where it has no target
    metric: str

    @property
    def entries(self) -> tuple[str, str]:
        """The entries of a batch that the loss reads."""
        return self.action, self.share


def with_mean_action_loss(surrogate: Surrogate, target: ActionTarget, weight: float) -> Surrogate:
    """`surrogate` plus `weight` times the mean over the rows of the squared distance of mean
    actions (n, A) to the target's, times each row's share."""

    def loss(mean: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
        total, metrics = surrogate(mean, batch)
        distance = (mean - batch[target.action]).square().sum(-1)
        added = (batch[target.share] * distance).mean()
        return total + weight * added, {**metrics, target.metric: added}

    return loss
