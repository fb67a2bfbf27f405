"""One training iteration: collect, score, advantages, fit. The objective is passed in as terms."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from pretrain.rl.background import Background, PendingCall
from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.returns import Critics, Discount, combine_advantages, gae
from pretrain.rl.rollout import Batch, Env, Noise, Rollout, collect_steps, concatenate

# -> (T, N); computed on another thread, step by step, while later steps are taken
Reward = Callable[[Rollout], Tensor]
Targets = Callable[[Rollout], Batch]  # -> tensors (T, N, ...) by name


@dataclass(frozen=True)
class Objective:
    """Reward terms as name -> (weight, term), and learners. Logs use the same names."""

    rewards: dict[str, tuple[float, Reward]]
    policy: Learner
    value: Learner
    others: tuple[Learner, ...] = ()
    # tensors of the batch that are computed across steps, such as the mean of a step's neighbors
    targets: tuple[Targets, ...] = ()

    @property
    def learners(self) -> tuple[Learner, ...]:
        return (self.policy, self.value, *self.others)


@dataclass(frozen=True)
class LoopConfig:
    horizon: int
    gamma: float
    lam: float
    env_reward_weight: float = 0.0
    critics: Critics = "joint"
    held_samples: int = 0  # samples at the start of a run in which the policy is not fitted


class Nets(Protocol):
    """The networks of a run: the policy, its value net and all others."""

    @property
    def policy(self) -> GaussianPolicy: ...
    @property
    def value(self) -> Value: ...
    def modules(self) -> dict[str, nn.Module]: ...


class LoopState(Protocol):
    """The state of an iteration, as in `Training`."""

    @property
    def nets(self) -> Nets: ...
    @property
    def env(self) -> Env: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def loop(self) -> LoopConfig: ...
    @property
    def noise(self) -> Noise: ...
    @property
    def rng(self) -> Generator: ...
    @property
    def background(self) -> Background: ...
    @property
    def samples(self) -> int: ...


@dataclass(frozen=True)
class StepScores:
    """Values and rewards of some steps."""

    value: Tensor  # (T, N, R), of the states in which the steps began
    reward_terms: dict[str, Tensor]  # (T, N) each, unweighted


def score(rollout: Rollout, value: Value, objective: Objective) -> StepScores:
    """Scores from the present networks. No learner may be fitted at the same time."""
    terms = {name: term(rollout) for name, (_, term) in objective.rewards.items()}
    return StepScores(value.predict(rollout.obs), terms)


@dataclass(frozen=True)
class StackedRewards:
    """What the value net predicts the returns of: each reward unweighted, or their weighted sum."""

    reward: Tensor  # (T, N, R)
    weight: Tensor  # (R,), 1 for the sum


def stack_rewards(
    rewards: dict[str, Tensor], weights: dict[str, float], critics: Critics
) -> StackedRewards:
    """`rewards` (T, N) by name, without those whose weight is 0."""
    weights = {name: weight for name, weight in weights.items() if weight}
    if critics != "joint" and weights:
        stacked = torch.stack([rewards[name] for name in weights], -1)
        return StackedRewards(stacked, torch.tensor(list(weights.values())))
    total = torch.zeros_like(next(iter(rewards.values())))
    for name, weight in weights.items():
        total = total + weight * rewards[name]
    return StackedRewards(total[..., None], torch.ones(1))


def bootstrap_values(rollout: Rollout, values: Tensor, value: Value) -> Tensor:
    """Values of each step's next state, (T, N, R), given those of its first state, `values`
    (T, N, R).

    Where an episode continues, the next step's value is taken. After a termination the value is not
    used."""
    next_values = values.roll(-1, 0)
    computed = rollout.truncated.clone()
    computed[-1] = True
    next_obs = {name: x[computed] for name, x in rollout.next_obs.items()}
    next_values[computed] = value.predict(next_obs)
    return next_values


@torch.no_grad()
def add_advantages(
    rollout: Rollout, rewards: StackedRewards, values: Tensor, value: Value, cfg: LoopConfig
) -> Batch:
    """The flat batch with `advantage` (n,) (zero mean, unit std, within +-4) and `return`
    (n, R), in units of the value net, whose statistics are first updated with these returns.
    `values` (T, N, R) are those of the steps' first states."""
    next_values = bootstrap_values(rollout, values, value)
    advantage = gae(
        rewards.reward,
        values,
        next_values,
        rollout.terminated,
        rollout.truncated,
        discount=Discount(cfg.gamma, cfg.lam),
    )
    returns = (advantage + values).flatten(0, 1)
    value.scale.update(returns)
    std = value.scale.std if cfg.critics == "normalized" else None
    return {
        **rollout.flatten(),
        "advantage": combine_advantages(advantage.flatten(0, 1), rewards.weight, std),
        "return": value.scale(returns),
    }


def run_iteration(state: LoopState) -> Scalars:
    """One iteration:

    1. `horizon` steps of all worlds. Meanwhile the second thread fits the value net and the other
       learners on the previous rollout, then computes each step's value and reward terms.
    2. Rewards, advantages and returns.
    3. The second thread starts to fit all learners but the policy's on this rollout; the policy is
       fitted here.

    Returns the log scalars, with timings in seconds; metrics of all learners but the policy's are
    those of the previous rollout."""
    start = time.perf_counter()
    rollout, pending = _collect(state)
    collected = time.perf_counter()
    metrics = state.background.take_metrics()
    scores = state.background.results(pending)
    value = state.nets.value
    objective = state.objective
    values = torch.cat([step.value for step in scores])
    terms = {"env": rollout.reward}
    weights = {"env": state.loop.env_reward_weight}
    for name, (weight, _) in objective.rewards.items():
        terms[name] = torch.cat([step.reward_terms[name] for step in scores])
        weights[name] = weight
    rewards = stack_rewards(terms, weights, state.loop.critics)
    batch = add_advantages(rollout, rewards, values, value, state.loop)
    for targets in objective.targets:
        batch |= {name: x.flatten(0, 1) for name, x in targets(rollout).items()}
    seeds = torch.randint(2**62, (2 + len(objective.others),), generator=state.rng).tolist()
    state.background.start_fits((objective.value, *objective.others), batch, seeds[1:])
    if state.samples >= state.loop.held_samples:
        metrics |= objective.policy.fit(batch, Generator().manual_seed(seeds[0]))
    return {
        **metrics,
        **{f"reward/{name}": float(term.mean()) for name, term in terms.items()},
        "episode/terminated": float(rollout.terminated.float().mean()),
        "episode/length": rollout.reward.numel() / max(int(rollout.resets.sum()), 1),
        "time/collect": collected - start,
        "time/learn": time.perf_counter() - collected,
    }


def _collect(state: LoopState) -> tuple[Rollout, list[PendingCall[StepScores]]]:
    """A rollout, and the scores of its steps, which are computed while later steps are taken."""
    taken: list[Rollout] = []
    pending: list[PendingCall[StepScores]] = []
    policy = state.nets.policy
    for step in collect_steps(state.env, policy, state.noise, state.loop.horizon, state.rng):
        taken.append(step)
        pending.append(
            state.background.submit(partial(score, step, state.nets.value, state.objective))
        )
    return concatenate(taken), pending
