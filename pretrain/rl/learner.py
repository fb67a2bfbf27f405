"""A learner: a loss, and the optimizer that minimizes it over a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from pretrain.rl.adam import Adam
from pretrain.rl.ppo import Loss
from pretrain.rl.rollout import Batch

# bounds of an adapted learning rate
MIN_LR = 1e-5
MAX_LR = 1e-3

Scalars = dict[str, float]


class Diverged(RuntimeError):
    """The loss or the gradients of a learner are not finite; the message names it."""


def check_finite(name: str, loss: Tensor) -> float:
    """`loss` as a number. Raises Diverged with `name` if it is not finite."""
    if not torch.isfinite(loss):
        raise Diverged(f"{name}: its loss is {float(loss)}")
    return float(loss)


@dataclass(frozen=True)
class Learner:
    """One loss and its optimizer, `epochs` times through the batch in minibatches of `minibatch`
    rows."""

    name: str
    keys: tuple[str, ...]  # the tensors of the batch that the loss reads
    loss: Loss
    optimizer: Adam
    epochs: int
    minibatch: int
    max_rows: int | None = None  # number of random rows of each rollout that are used; None: all
    max_grad_norm: float = 1.0
    # the learning rate is adapted towards this policy change per fit
    target_kl: float | None = None
    # called with each minibatch whose gradient was finite, after the step
    observe: Callable[[Batch], None] | None = None

    def fit(self, batch: Batch, rng: Generator) -> Scalars:
        """Metrics are means over the minibatches. A step whose gradient is not finite is skipped
        and counted.

        Raises Diverged if most steps were skipped: such a run does not recover."""
        rows = len(batch[self.keys[0]])
        totals: dict[str, Tensor] = {}
        steps = 0
        skipped = 0
        for _ in range(self.epochs):
            order = torch.randperm(rows, generator=rng)[: self.max_rows]
            shuffled = [
                batch[key].index_select(0, order).split(self.minibatch) for key in self.keys
            ]
            for minibatch in zip(*shuffled, strict=True):
                named = dict(zip(self.keys, minibatch, strict=True))
                loss, metrics = self.loss(named, rng)
                finite = self._step(loss)
                skipped += not finite
                if finite and self.observe:
                    self.observe(named)
                steps += 1
                for key, value in {"loss": loss, **metrics}.items():
                    totals[key] = totals.get(key, torch.zeros(())) + value.detach()
        if 2 * skipped > steps:
            raise Diverged(f"{self.name}: {skipped} of its {steps} gradient steps were not finite")
        means = {f"{self.name}/{key}": float(total) / steps for key, total in totals.items()}
        if self.target_kl is not None:
            self._adapt_lr(means[f"{self.name}/kl"] / self.target_kl)
        return {
            **means,
            f"{self.name}/skipped": float(skipped),
            f"{self.name}/lr": self.optimizer.lr,
        }

    def _adapt_lr(self, excess: float) -> None:
        """A lower rate after a change of twice the target, a higher one after less than half of it.
        (The rule of rsl_rl, per fit.)"""
        factor = 1 / 1.5 if excess > 2 else 1.5 if excess < 0.5 else 1.0
        self.optimizer.lr = min(max(self.optimizer.lr * factor, MIN_LR), MAX_LR)

    def _step(self, loss: Tensor) -> bool:
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.optimizer.parameters, self.max_grad_norm, foreach=True)
        finite = bool(torch.isfinite(norm))
        if finite:
            self.optimizer.step()
        return finite
