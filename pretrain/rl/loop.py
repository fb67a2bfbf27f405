"""The only training loop of the project: collect, reward, advantage, fit. What is learned comes in as terms."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Generator, Tensor

from pretrain.rl.background import Asked, Background
from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.returns import gae
from pretrain.rl.rollout import Batch, Env, Noise, Rollout, joined, steps

Reward = Callable[[Rollout], Tensor]  # -> (T, N); computed on another thread, step by step, while later steps are taken


@dataclass(frozen=True)
class Objective:
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


@dataclass(frozen=True)
class Judged:
    """What some steps are worth, (T, N) each."""

    value: Tensor  # of the states that they began in
    earned: dict[str, Tensor]  # by each reward term


def judge(rollout: Rollout, value: Value, objective: Objective) -> Judged:
    """By all that has been learned from the rollout before: nobody may be learning meanwhile."""
    return Judged(value.unscaled(rollout.obs), {name: term(rollout) for name, (_, term) in objective.rewards.items()})


def rewarded(
    rollout: Rollout, earned: dict[str, Tensor], objective: Objective, cfg: LoopConfig
) -> tuple[Rollout, Scalars]:
    """Total reward = weighted environment reward + weighted terms `earned` (T, N); every term's mean is logged unweighted."""
    total = cfg.env_reward_weight * rollout.reward
    scalars = {"reward/env": float(rollout.reward.mean())}
    for name, (weight, _) in objective.rewards.items():
        total = total + weight * earned[name]
        scalars[f"reward/{name}"] = float(earned[name].mean())
    return replace(rollout, reward=total), scalars


def valued(rollout: Rollout, here: Tensor, value: Value) -> Tensor:
    """Where each step led to, (T, N), given the values `here` (T, N) of where it began. What goes on leads to the next step,
    whose value is known; nobody asks for it after a termination."""
    there = here.roll(-1, 0)
    elsewhere = rollout.truncated.clone()
    elsewhere[-1] = True
    there[elsewhere] = value.unscaled({name: x[elsewhere] for name, x in rollout.next_obs.items()})
    return there


@torch.no_grad()
def with_advantages(rollout: Rollout, values: tuple[Tensor, Tensor], value: Value, cfg: LoopConfig) -> Batch:
    """The flat batch with `advantage` (zero mean, unit spread, within +-4) and `return` (in the value's units, which take
    these returns in first)."""
    args = (rollout.reward, *values, rollout.terminated, rollout.truncated, cfg.gamma, cfg.lam)
    advantage = gae(*args)
    returns = (advantage + values[0]).flatten()
    value.scale.update(returns[:, None])
    advantage = advantage.flatten()
    advantage = ((advantage - advantage.mean()) / advantage.std().clamp_min(1e-6)).clamp(-4, 4)
    return {**rollout.flat(), "advantage": advantage, "return": value.scale(returns[:, None])[:, 0]}


def iterate(
    env: Env,
    policy: GaussianPolicy,
    value: Value,
    objective: Objective,
    cfg: LoopConfig,
    noise: Noise,
    rng: Generator,
    background: Background,
) -> Scalars:
    """One turn of the loop. Returns everything worth logging, timings in seconds included; of all learners but the policy's
    what they learned from the rollout before."""
    started = time.perf_counter()
    taken: list[Rollout] = []
    asked: list[Asked[Judged]] = []
    for step in steps(env, policy, noise, cfg.horizon, rng):
        taken.append(step)
        asked.append(background.ask(partial(judge, step, value, objective)))
    rollout = joined(taken)
    collected = time.perf_counter()
    learned = background.report()
    judged = background.answers(asked)
    here = torch.cat([step.value for step in judged])
    earned = {name: torch.cat([step.earned[name] for step in judged]) for name in objective.rewards}
    rollout, scalars = rewarded(rollout, earned, objective, cfg)
    batch = with_advantages(rollout, (here, valued(rollout, here, value)), value, cfg)
    first, *seeds = torch.randint(2**62, (2 + len(objective.others),), generator=rng).tolist()
    background.begin((objective.value, *objective.others), batch, seeds)
    scalars |= objective.policy.fit(batch, Generator().manual_seed(first))
    finished = time.perf_counter()
    return {
        **scalars,
        **learned,
        "episode/terminated": float(rollout.terminated.float().mean()),
        "episode/length": rollout.reward.numel() / max(int(rollout.ended.sum()), 1),
        "time/collect": collected - started,
        "time/learn": finished - collected,
    }
