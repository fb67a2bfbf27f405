"""A learner: a loss, and the optimiser that follows it through a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from pretrain.rl.ppo import Loss
from pretrain.rl.rollout import Batch

SLOWEST, FASTEST = 1e-5, 1e-3  # learning rates of a learner that is steered

Scalars = dict[str, float]


class Diverged(RuntimeError):
    """A learner has nothing left to go by; the message names it."""


def finite(name: str, loss: Tensor) -> float:
    """`loss` as a number. Diverged, which says that it is `name`'s, if it is infinite or none."""
    if not torch.isfinite(loss):
        raise Diverged(f"{name}: its loss is {float(loss)}")
    return float(loss)


@dataclass(frozen=True)
class Learner:
    """One loss and the optimiser that follows it, `epochs` times through the batch in minibatches of `minibatch` rows."""

    name: str
    keys: tuple[str, ...]  # of the batch, what the loss reads
    loss: Loss
    optimizer: Optimizer
    epochs: int
    minibatch: int
    max_rows: int | None = None  # learn from that many random rows of each rollout
    max_grad_norm: float = 1.0
    target_kl: float | None = None  # steer the learning rate towards this policy change per fit

    def fit(self, batch: Batch, rng: Generator) -> Scalars:
        """Metrics are means over the minibatches. A step whose gradient is not finite is skipped and counted.

        Diverged if most of them were: it may go on so for ever, and what a few steps teach is worth nothing.
        """
        rows = len(batch[self.keys[0]])
        totals: dict[str, Tensor] = {}
        steps = skipped = 0
        for _ in range(self.epochs):
            order = torch.randperm(rows, generator=rng)[: self.max_rows]
            shuffled = [batch[key].index_select(0, order).split(self.minibatch) for key in self.keys]
            for minibatch in zip(*shuffled, strict=True):
                loss, metrics = self.loss(dict(zip(self.keys, minibatch, strict=True)), rng)
                skipped += not self._descend(loss)
                steps += 1
                for key, value in {"loss": loss, **metrics}.items():
                    totals[key] = totals.get(key, torch.zeros(())) + value.detach()
        if 2 * skipped > steps:
            raise Diverged(f"{self.name}: {skipped} of its {steps} gradient steps were not finite")
        means = {f"{self.name}/{key}": float(total) / steps for key, total in totals.items()}
        if self.target_kl is not None:
            self._steer(means[f"{self.name}/kl"] / self.target_kl)
        return {
            **means,
            f"{self.name}/skipped": float(skipped),
            f"{self.name}/lr": self.optimizer.param_groups[0]["lr"],
        }

    def _steer(self, excess: float) -> None:
        """Slower after a change twice the target, faster after one below half. (The rule of rsl_rl, per fit.)"""
        factor = 1 / 1.5 if excess > 2 else 1.5 if excess < 0.5 else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = min(max(group["lr"] * factor, SLOWEST), FASTEST)

    def _descend(self, loss: Tensor) -> bool:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, self.max_grad_norm, foreach=True)
        finite = bool(torch.isfinite(norm))
        if finite:
            self.optimizer.step()
        return finite
