"""Skill latents: points on the unit sphere, and an environment that gives each world one and
changes it now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ALL, ActionScale, CharacterEnv, Outcome
from pretrain.sim.stateful import TensorState

TRIES = 128  # directions drawn to find one that a clip is nearest to


def sphere(n: int, dim: int, rng: Generator) -> Tensor:
    """n directions, uniform on the unit sphere, (n, dim)."""
    return normalize(torch.randn(n, dim, generator=rng), dim=-1)


def nearest_to(clips: Tensor, latents: Tensor, rng: Generator) -> Tensor:
    """Directions that the latents of `clips` (n,) are nearest to of `latents` (C, dim), any of them
    as likely as another, (n, dim); or that latent itself, where none is found."""
    drawn = sphere(len(clips) * TRIES, latents.shape[1], rng).view(len(clips), TRIES, latents.shape[1])
    near = (drawn @ latents.T).argmax(-1) == clips[:, None]
    first = drawn[torch.arange(len(clips)), near.byte().argmax(1)]
    return torch.where(near.any(1)[:, None], first, latents[clips])


@dataclass(frozen=True)
class LatentSchedule:
    """How long a world keeps its latent, uniform in control steps, and how often it gets a clip's
    own."""

    dim: int
    shortest: int  # control steps
    longest: int
    clip_prob: float  # share of latents that are a clip's own; when an episode begins, those of the clip it begins in
    near_prob: float = 0.0  # then, of the others, share that are nearest to that clip's, not anywhere
    own_return: bool = False  # a latent's return ends with it, in what its state is worth under it

    def lifetimes(self, n: int, rng: Generator) -> Tensor:
        return torch.randint(self.shortest, self.longest + 1, (n,), generator=rng)


class SkillEnv(TensorState):
    """CharacterEnv with a latent per world: the ASE training environment. (Peng et al. 2022,
    section 5.)

    Observations are `obs` (N, 13 + 2 J) and `z` (N, dim). Rewards are terms of the rollout: the
    environment itself pays nothing and only records the style window. `near_probs` gives the share
    of `LatentSchedule.near_prob` clip by clip, (C,), at every reset; by default all clips have the
    schedule's.
    """

    state_fields = ("z", "z_clip", "left")

    def __init__(
        self,
        env: CharacterEnv,
        action_scale: ActionScale,
        schedule: LatentSchedule,
        clip_latents: Tensor,
        *,
        rng: Generator,
        near_probs: Callable[[], Tensor] | None = None,
    ):
        self.env = env
        self.action_scale = action_scale
        self.schedule = schedule
        self._rng = rng
        self._near_probs = near_probs or self._same_near_prob
        self.num_envs = env.num_envs
        self.clip_latents = clip_latents  # (C, dim), the encoder's own: the warm start writes to it
        self.z = torch.zeros(self.num_envs, schedule.dim)
        self.z_clip = torch.zeros(self.num_envs, dtype=torch.long)  # the clip whose own latent is nearest to z
        self.left = torch.zeros(self.num_envs, dtype=torch.long)  # control steps until the next change
        self.reset(torch.arange(self.num_envs))

    def _same_near_prob(self) -> Tensor:
        return torch.full((len(self.clip_latents),), self.schedule.near_prob)

    def reset(self, ids: Tensor) -> None:
        if not len(ids):
            return
        self.env.reset(ids)
        clips = self.env.clip[ids]
        self._draw(ids, clips, clips, self._near_probs()[clips])

    def _draw(self, ids: Tensor, clips: Tensor, moving: Tensor, near: Tensor | None = None) -> None:
        """New latents for worlds `ids` (n,) that move as in clips `moving` (n,).

        A share of them are those of `clips` (n,), of the others shares `near` (n,) nearest to
        those, the rest lie anywhere on the sphere.
        """
        own = torch.rand(len(ids), generator=self._rng) < self.schedule.clip_prob
        z = sphere(len(ids), self.schedule.dim, self._rng)
        if near is not None:
            close = (torch.rand(len(ids), generator=self._rng) < near).nonzero()[:, 0]
            z[close] = nearest_to(clips[close], self.clip_latents, self._rng)
        self.z[ids] = torch.where(own[:, None], self.clip_latents[clips], z)
        self.z_clip[ids] = torch.where(own, clips, (z @ self.clip_latents.T).argmax(-1))
        self.left[ids] = self.schedule.lifetimes(len(ids), self._rng)
        self.env.falls.protect(ids, moving, self.z_clip[ids])

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = ALL if ids is None else ids
        return {"obs": self.env.obs(rows), "z": self.z[rows].clone()}

    def step(self, action: Tensor) -> Step:
        """Actions (N, J), in units of the action scale, held for one control step.

        `terminated` fell for good, broke, or has just gone down; the last of these is not reset, so
        that getting up is learned. `truncated` is out of time or, with `own_return`, under another
        latent now. `extras`: `window` (N, W * F), and `z_clip` (N,), the clip that the
        discriminator compares it with.
        """
        clips = self.z_clip.clone()
        outcome = self.advance(action)
        lost = outcome.fell | outcome.broken
        failed = lost | self.went_down()
        own = self.observe() if self.schedule.own_return else None
        expired = self.resample_expired(clips)
        return Step(
            next_obs=own or self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=failed,
            truncated=outcome.timed_out if own is None else outcome.timed_out | expired & ~failed,
            extras={"window": self.env.windows().clone(), "z_clip": clips},  # a reset writes into the env's own
            goes_on=~(lost | outcome.timed_out),
        )

    def advance(self, action: Tensor) -> Outcome:
        """One control step of the characters under actions (N, J); latents stay as they are."""
        return self.env.step(self.action_scale.target(action), self.z_clip)

    def went_down(self) -> Tensor:
        """Worlds that have just gone down, (N,) bool: a failure also where a world has time to get
        up."""
        return self.env.falls.down == 1

    def resample_expired(self, moving: Tensor) -> Tensor:
        """Count one control step of every latent, and draw another where none is left, of worlds
        that move as in clips `moving` (N,). Returns where, (N,) bool."""
        self.left -= 1
        over = self.left <= 0
        expired = over.nonzero()[:, 0]
        if len(expired):
            clips, _ = self.env.library.sample(len(expired), self._rng)
            self._draw(expired, clips, moving[expired])
        return over

    def snapshot(self) -> dict[str, Any]:
        return {"env": self.env.snapshot(), **super().snapshot(), "skill_rng": self._rng.get_state()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.env.restore(snapshot["env"])
        super().restore(snapshot)
        self._rng.set_state(snapshot["skill_rng"])
