"""Rollout: what happened in T steps of N worlds. Knows nothing of bodies or skills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Generator, Tensor

Batch = dict[str, Tensor]  # named tensors with the same leading axes


@dataclass(frozen=True)
class Step:
    """What one action led to, before any reset. Nothing writes into its tensors later: another thread reads them meanwhile."""

    next_obs: Batch  # s_{t+1} as the policy would see it, also where the episode ended; of a world that broke, where it is now
    reward: Tensor  # (N,) the environment's own
    terminated: Tensor  # (N,) bool: it failed, the future is worth nothing
    truncated: Tensor  # (N,) bool: it was stopped, the future is worth V(s_{t+1})
    extras: Batch = field(default_factory=dict)  # further tensors (N, ...) for reward terms and losses
    # (N,) bool: not reset, although its return ends here, for what comes is worth learning from; None: all that ended are reset
    goes_on: Tensor | None = None


class Env(Protocol):
    """N worlds. `step` never resets: the caller sees the true next observation, then resets what is done. Worlds where nothing
    terminated or was truncated are observed next as the step said."""

    num_envs: int

    def observe(self, ids: Tensor | None = None) -> Batch:
        """Of worlds `ids` (n,), or of all."""
        ...

    def step(self, action: Tensor) -> Step: ...
    def reset(self, ids: Tensor) -> None: ...


class Policy(Protocol):
    def act(self, obs: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Action under standard normal `noise` (N, A), and its log-probability (N,)."""
        ...


@dataclass
class Noise:
    """Exploration noise, standard normal at each step and correlated from step to step by `color`.

    A lagging joint averages white noise away; low frequencies move the body. (Hollenstein et al. 2024, "Colored noise in
    PPO": the policy gradient treats the steps as independent, and gains.)
    """

    color: float  # correlation of one step with the next, 0 is white
    value: Tensor  # (N, A)

    def draw(self, rng: Generator) -> Tensor:
        fresh = torch.randn(self.value.shape, generator=rng)
        self.value = self.color * self.value + (1 - self.color**2) ** 0.5 * fresh
        return self.value


@dataclass(frozen=True)
class Rollout:
    """Every tensor is (T, N, ...)."""

    obs: Batch
    next_obs: Batch
    action: Tensor
    logp: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    ended: Tensor  # bool: the episode was over, and the world was reset
    extras: Batch

    def flat(self) -> Batch:
        """All steps as one batch (T * N, ...) under their names; observations keep theirs."""
        steps = {**self.obs, **self.extras, "action": self.action, "logp": self.logp}
        return {name: x.flatten(0, 1) for name, x in steps.items()}


@torch.no_grad()
def steps(env: Env, policy: Policy, noise: Noise, horizon: int, rng: Generator) -> Iterator[Rollout]:
    """`horizon` steps of every world under `policy`, a rollout each, resetting worlds between them as they end."""
    obs = env.observe()
    for _ in range(horizon):
        action, logp = policy.act(obs, noise.draw(rng))
        step = env.step(action)
        over = step.terminated | step.truncated
        ended = over if step.goes_on is None else over & ~step.goes_on
        yield Rollout(
            obs=_one(obs),
            next_obs=_one(step.next_obs),
            action=action[None],
            logp=logp[None],
            reward=step.reward[None],
            terminated=step.terminated[None],
            truncated=step.truncated[None],
            ended=ended[None],
            extras=_one(step.extras),
        )
        env.reset(ended.nonzero()[:, 0])
        obs = _anew(env, over.nonzero()[:, 0], step.next_obs)


def joined(parts: Sequence[Rollout]) -> Rollout:
    """One rollout of `parts` that follow one another."""
    return Rollout(
        obs=_cat([part.obs for part in parts]),
        next_obs=_cat([part.next_obs for part in parts]),
        action=torch.cat([part.action for part in parts]),
        logp=torch.cat([part.logp for part in parts]),
        reward=torch.cat([part.reward for part in parts]),
        terminated=torch.cat([part.terminated for part in parts]),
        truncated=torch.cat([part.truncated for part in parts]),
        ended=torch.cat([part.ended for part in parts]),
        extras=_cat([part.extras for part in parts]),
    )


def collect(env: Env, policy: Policy, noise: Noise, horizon: int, rng: Generator) -> Rollout:
    """`horizon` steps, as one rollout."""
    return joined(list(steps(env, policy, noise, horizon, rng)))


def _anew(env: Env, ids: Tensor, seen: Batch) -> Batch:
    """`seen` (N, ...), but of worlds `ids` (n,) as they are now."""
    if not len(ids):
        return seen
    now = env.observe(ids)
    return {name: x.index_copy(0, ids, now[name]) for name, x in seen.items()}


def _one(batch: Batch) -> Batch:
    return {name: x[None] for name, x in batch.items()}


def _cat(batches: list[Batch]) -> Batch:
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}
