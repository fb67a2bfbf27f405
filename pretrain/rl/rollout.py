"""Rollout: T steps of N worlds. Independent of bodies and skills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor

Batch = dict[str, Tensor]  # named tensors with the same leading axes


@dataclass(frozen=True)
class Step:
    """The result of one action, before any reset. Its tensors must not be written to afterwards:
    another thread reads them."""

    # s_{t+1}, also where the episode ended; for a world whose state broke, the state it was reset
    # to
    next_obs: Batch
    reward: Tensor  # (N,) the environment's
    terminated: Tensor  # (N,) bool: a failure, the return after it is 0
    truncated: Tensor  # (N,) bool: stopped, the return after it is V(s_{t+1})
    # further tensors (N, ...) for reward terms and losses
    extras: Batch = field(default_factory=dict)
    # (N,) bool: worlds whose episode is over; elsewhere the return may end within the episode.
    # None: all that terminated or were truncated
    resets: Tensor | None = None


class Env(Protocol):
    """N worlds. `step` resets only worlds whose simulation diverged: the caller gets the true next
    observation, then resets finished worlds. The next observation of all others is the `next_obs`
    of the step."""

    num_envs: int

    def observe(self, ids: Tensor | None = None) -> Batch:
        """The observations of worlds `ids` (n,), or of all."""
        ...

    def step(self, action: Tensor) -> Step: ...
    def reset(self, ids: Tensor) -> None: ...


class SampledAction(NamedTuple):
    mean: Tensor  # (N, A)
    action: Tensor  # (N, A), the mean under the noise of exploration
    logp: Tensor  # (N,) log-probability of the action


class Policy(Protocol):
    def act(self, obs: Batch, noise: Tensor) -> SampledAction:
        """An action under standard normal `noise` (N, A)."""
        ...


@dataclass
class Noise:
    """Exploration noise, standard normal at each step and correlated from step to step by `color`.

    A lagging joint averages white noise out; low frequencies move the body. (Hollenstein et al.
    2024, "Colored noise in PPO": the policy gradient treats the steps as independent, and still
    improves.)"""

    color: float  # correlation of one step with the next, 0 is white
    value: Tensor  # (N, A), of the last step

    @staticmethod
    def begin(color: float, num_envs: int, size: int, rng: Generator) -> Noise:
        """Noise of `size` values in each world."""
        return Noise(color, torch.randn(num_envs, size, generator=rng))

    def draw(self, rng: Generator) -> Tensor:
        """Draw the noise of the next step, (N, A), and keep it for the following one."""
        fresh = torch.randn(self.value.shape, generator=rng)
        self.value = self.color * self.value + (1 - self.color**2) ** 0.5 * fresh
        return self.value


@dataclass(frozen=True)
class Rollout:
    """Every tensor is (T, N, ...)."""

    obs: Batch
    next_obs: Batch
    mean: Tensor  # mean action
    action: Tensor
    logp: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    resets: Tensor  # bool: the episode was over, and the world was reset
    extras: Batch

    def flatten(self) -> Batch:
        """All steps as one batch (T * N, ...), by name."""
        steps = {**self.obs, **self.extras, "action": self.action, "logp": self.logp}
        return {name: x.flatten(0, 1) for name, x in steps.items()}


@torch.no_grad()
def collect_steps(
    env: Env, policy: Policy, noise: Noise, horizon: int, rng: Generator
) -> Iterator[Rollout]:
    """`horizon` steps of every world under `policy`, each as a rollout; worlds are reset between
    them as their episodes end."""
    obs = env.observe()
    for _ in range(horizon):
        sampled = policy.act(obs, noise.draw(rng))
        step = env.step(sampled.action)
        cut = step.terminated | step.truncated  # the return ends here
        resets = cut if step.resets is None else step.resets
        yield Rollout(
            obs=_add_time_axis(obs),
            next_obs=_add_time_axis(step.next_obs),
            mean=sampled.mean[None],
            action=sampled.action[None],
            logp=sampled.logp[None],
            reward=step.reward[None],
            terminated=step.terminated[None],
            truncated=step.truncated[None],
            resets=resets[None],
            extras=_add_time_axis(step.extras),
        )
        env.reset(resets.nonzero()[:, 0])
        obs = _replace_rows(step.next_obs, env, cut.nonzero()[:, 0])


def concatenate(parts: Sequence[Rollout]) -> Rollout:
    """One rollout of consecutive `parts`."""
    return Rollout(
        obs=_concatenate([part.obs for part in parts]),
        next_obs=_concatenate([part.next_obs for part in parts]),
        mean=torch.cat([part.mean for part in parts]),
        action=torch.cat([part.action for part in parts]),
        logp=torch.cat([part.logp for part in parts]),
        reward=torch.cat([part.reward for part in parts]),
        terminated=torch.cat([part.terminated for part in parts]),
        truncated=torch.cat([part.truncated for part in parts]),
        resets=torch.cat([part.resets for part in parts]),
        extras=_concatenate([part.extras for part in parts]),
    )


def _replace_rows(obs: Batch, env: Env, ids: Tensor) -> Batch:
    """`obs` (N, ...) with the present observations of worlds `ids` (n,)."""
    if not len(ids):
        return obs
    now = env.observe(ids)
    return {name: x.index_copy(0, ids, now[name]) for name, x in obs.items()}


def _add_time_axis(batch: Batch) -> Batch:
    return {name: x[None] for name, x in batch.items()}


def _concatenate(batches: list[Batch]) -> Batch:
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}
