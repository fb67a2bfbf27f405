"""The only training loop of the project: collect, reward, advantage, fit. What is learned comes in as terms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from pretrain.rl.mirror import untied
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.ppo import Loss
from pretrain.rl.returns import gae
from pretrain.rl.rollout import Batch, Env, Noise, Rollout, collect

Reward = Callable[[Rollout], Tensor]  # -> (T, N)
Scalars = dict[str, float]


class Diverged(RuntimeError):
    """A learner has nothing left to go by; the message names it."""


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

        Diverged if there was no other.
        """
        rows = len(batch[self.keys[0]])
        totals: dict[str, Tensor] = {}
        steps = skipped = 0
        for _ in range(self.epochs):
            order = torch.randperm(rows, generator=rng)[: self.max_rows]
            shuffled = [batch[key][order].split(self.minibatch) for key in self.keys]
            for minibatch in zip(*shuffled, strict=True):
                loss, metrics = self.loss(dict(zip(self.keys, minibatch, strict=True)), rng)
                skipped += not self._descend(loss)
                steps += 1
                for key, value in {"loss": loss, **metrics}.items():
                    totals[key] = totals.get(key, torch.zeros(())) + value.detach()
        if skipped == steps:
            raise Diverged(f"{self.name}: none of its {steps} gradient steps was finite")
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
            group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-3)

    def _descend(self, loss: Tensor) -> bool:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, self.max_grad_norm, foreach=True)
        finite = bool(torch.isfinite(norm))
        if finite:
            self.optimizer.step()
        return finite


@dataclass(frozen=True)
class Recipe:
    """What to learn: reward terms as name -> (weight, term), and learners. The name is the term's name in the logs."""

    rewards: dict[str, tuple[float, Reward]]
    policy: Learner
    value: Learner
    others: tuple[Learner, ...] = ()

    @property
    def learners(self) -> tuple[Learner, ...]:
        return (self.policy, self.value, *self.others)


@dataclass(frozen=True)
class LoopConfig:
    horizon: int
    gamma: float
    lam: float
    env_reward_weight: float = 0.0


def rewarded(rollout: Rollout, recipe: Recipe, cfg: LoopConfig) -> tuple[Rollout, Scalars]:
    """Total reward = weighted environment reward + weighted terms; every term's mean is logged unweighted."""
    total = cfg.env_reward_weight * rollout.reward
    scalars = {"reward/env": float(rollout.reward.mean())}
    for name, (weight, term) in recipe.rewards.items():
        earned = term(rollout)
        total = total + weight * earned
        scalars[f"reward/{name}"] = float(earned.mean())
    return replace(rollout, reward=total), scalars


@torch.no_grad()
def with_advantages(rollout: Rollout, value: Value, cfg: LoopConfig) -> Batch:
    """The flat batch with `advantage` (zero mean, unit spread, within +-4) and `return` (in the value's units)."""
    values, next_values = value.unscaled(rollout.obs), value.unscaled(rollout.next_obs)
    args = (rollout.reward, values, next_values, rollout.terminated, rollout.truncated, cfg.gamma, cfg.lam)
    advantage = gae(*args)
    returns = (advantage + values).flatten()
    value.scale.update(returns[:, None])
    advantage = advantage.flatten()
    advantage = ((advantage - advantage.mean()) / advantage.std().clamp_min(1e-6)).clamp(-4, 4)
    return {**rollout.flat(), "advantage": advantage, "return": value.scale(returns[:, None])[:, 0]}


def fit_all(learners: Sequence[Learner], batch: Batch, rng: Generator, cores: int) -> Scalars:
    """Fit learners side by side, each on one thread and random numbers of its own: all they share is the batch.

    Layers this small gain little from a second thread; two learners on one thread each do. And the bits are the same on one
    core as on many: on Intel's processors a product that two threads share is rounded otherwise.
    """
    seeds = torch.randint(2**62, (len(learners),), generator=rng).tolist()
    with ThreadPoolExecutor(min(cores, len(learners)), initializer=torch.set_num_threads, initargs=(1,)) as pool:
        fits = [
            pool.submit(learner.fit, batch, Generator().manual_seed(seed))
            for learner, seed in zip(learners, seeds, strict=True)
        ]
    return {key: value for fit in fits for key, value in fit.result().items()}


def iterate(
    env: Env, policy: GaussianPolicy, value: Value, recipe: Recipe, cfg: LoopConfig, noise: Noise, rng: Generator
) -> Scalars:
    """One turn of the loop. Returns everything worth logging, timings in seconds included."""
    with one_thread() as cores:
        return _iterated(env, policy, value, recipe, cfg, noise, rng, cores)


@contextmanager
def one_thread() -> Iterator[int]:
    """For layers this small a second thread does nothing but spin, on a core that the engine could use."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield cores
    finally:
        torch.set_num_threads(cores)


def _iterated(
    env: Env,
    policy: GaussianPolicy,
    value: Value,
    recipe: Recipe,
    cfg: LoopConfig,
    noise: Noise,
    rng: Generator,
    cores: int,
) -> Scalars:
    started = time.perf_counter()
    rollout = collect(env, untied(deepcopy(policy)), noise, cfg.horizon, rng)  # its weights tied once, not at each step
    collected = time.perf_counter()
    rollout, scalars = rewarded(rollout, recipe, cfg)
    batch = with_advantages(rollout, value, cfg)
    scalars |= fit_all(recipe.learners, batch, rng, cores)
    finished = time.perf_counter()
    return scalars | {
        "episode/terminated": float(rollout.terminated.float().mean()),
        "episode/length": rollout.reward.numel() / max(int(rollout.ended.sum()), 1),
        "time/collect": collected - started,
        "time/learn": finished - collected,
    }
