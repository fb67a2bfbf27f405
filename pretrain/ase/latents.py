"""Skill latents: points on the unit sphere, and an environment in which each world has one, redrawn
after random times."""

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

TRIES = 128  # random directions per draw of `draw_nearest_to`


def sample_on_sphere(n: int, dim: int, rng: Generator) -> Tensor:
    """n directions, uniform on the unit sphere, (n, dim)."""
    return normalize(torch.randn(n, dim, generator=rng), dim=-1)


def draw_nearest_to(clips: Tensor, latents: Tensor, rng: Generator) -> Tensor:
    """Uniform directions (n, dim) among those whose nearest of `latents` (C, dim) is that of
    `clips` (n,); that latent itself where none is found."""
    dim = latents.shape[1]
    drawn = sample_on_sphere(len(clips) * TRIES, dim, rng).view(len(clips), TRIES, dim)
    near = (drawn @ latents.T).argmax(-1) == clips[:, None]
    first = drawn[torch.arange(len(clips)), near.byte().argmax(1)]
    return torch.where(near.any(1)[:, None], first, latents[clips])


@dataclass(frozen=True)
class LatentSchedule:
    """How long a world keeps its latent, uniform in control steps, and how it is drawn."""

    dim: int
    shortest: int  # control steps
    longest: int
    # share of latents that are a clip's own; at the start of an episode, of the clip where it
    # begins
    clip_prob: float
    # of the other latents at the start of an episode, the share nearest to that clip's
    near_prob: float = 0.0
    # the return of a latent ends with it, bootstrapped by the value under it
    own_return: bool = False

    def draw_lifetimes(self, n: int, rng: Generator) -> Tensor:
        return torch.randint(self.shortest, self.longest + 1, (n,), generator=rng)


class SkillEnv(TensorState):
    """CharacterEnv with a latent per world: the ASE training environment. (Peng et al. 2022,
    section 5.)

    Observations are `obs` (N, 13 + 2 J) and `z` (N, dim). Rewards are terms of the rollout: the
    reward of the environment is 0, and it records the style window. `near_probs` gives the share
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
        # the clip whose own latent is nearest to z
        self.z_clip = torch.zeros(self.num_envs, dtype=torch.long)
        # control steps until the next change
        self.left = torch.zeros(self.num_envs, dtype=torch.long)
        self.reset(torch.arange(self.num_envs))

    def _same_near_prob(self) -> Tensor:
        return torch.full((len(self.clip_latents),), self.schedule.near_prob)

    def reset(self, ids: Tensor) -> None:
        if not len(ids):
            return
        self.env.reset(ids)
        clips = self.env.clip[ids]
        self._draw(ids, clips, clips, self._near_probs()[clips])

    def _draw(self, ids: Tensor, clips: Tensor, before: Tensor, near: Tensor | None = None) -> None:
        """New latents for worlds `ids` (n,) that have followed clips `before` (n,).

        A share of them are those of `clips` (n,); of the others, shares `near` (n,) are nearest to
        those, and the rest are uniform on the sphere.
        """
        own = torch.rand(len(ids), generator=self._rng) < self.schedule.clip_prob
        z = sample_on_sphere(len(ids), self.schedule.dim, self._rng)
        if near is not None:
            close = (torch.rand(len(ids), generator=self._rng) < near).nonzero()[:, 0]
            z[close] = draw_nearest_to(clips[close], self.clip_latents, self._rng)
        self.z[ids] = torch.where(own[:, None], self.clip_latents[clips], z)
        self.z_clip[ids] = torch.where(own, clips, (z @ self.clip_latents.T).argmax(-1))
        self.left[ids] = self.schedule.draw_lifetimes(len(ids), self._rng)
        self.env.falls.protect(ids, before, self.z_clip[ids])

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = ALL if ids is None else ids
        return {"obs": self.env.obs(rows), "z": self.z[rows].clone()}

    def step(self, action: Tensor) -> Step:
        """Actions (N, J), in units of the action scale, held for one control step.

        `terminated`: a fall for good, a broken state, or a world that has just gone down; the last
        of these is not reset, so that getting up is learned. `truncated`: out of time or, with
        `own_return`, a change of latent. `extras`: `window` (N, W * F), and `z_clip` (N,), the clip
        that the discriminator compares it with."""
        clips = self.z_clip.clone()
        outcome = self.advance(action)
        lost = outcome.fell | outcome.broken
        failed = lost | self.find_new_falls()
        own = self.observe() if self.schedule.own_return else None
        expired = self.resample_expired(clips)
        return Step(
            next_obs=own or self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=failed,
            truncated=outcome.timed_out if own is None else outcome.timed_out | expired & ~failed,
            # cloned: a reset writes into the env's
            extras={"window": self.env.windows().clone(), "z_clip": clips},
            continues=~(lost | outcome.timed_out),
        )

    def advance(self, action: Tensor) -> Outcome:
        """One control step of the characters under actions (N, J); latents stay as they are."""
        return self.env.step(self.action_scale.target(action), self.z_clip)

    def find_new_falls(self) -> Tensor:
        """Worlds that have just gone down, (N,) bool: a failure also where there is time to get
        up."""
        return self.env.falls.down == 1

    def resample_expired(self, clips: Tensor) -> Tensor:
        """Count one control step of every latent, and draw another where its time is over, in
        worlds that have followed clips (N,). Returns where, (N,) bool."""
        self.left -= 1
        over = self.left <= 0
        expired = over.nonzero()[:, 0]
        if len(expired):
            drawn, _ = self.env.library.sample(len(expired), self._rng)
            self._draw(expired, drawn, clips[expired])
        return over

    def snapshot(self) -> dict[str, Any]:
        return {
            "env": self.env.snapshot(),
            **super().snapshot(),
            "skill_rng": self._rng.get_state(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.env.restore(snapshot["env"])
        super().restore(snapshot)
        self._rng.set_state(snapshot["skill_rng"])
