"""Skill latents: points on the unit sphere, and an environment that hands each world one and changes it now and then."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ActionScale, CharacterEnv


def sphere(n: int, dim: int, rng: Generator) -> Tensor:
    """n directions, uniform on the unit sphere, (n, dim)."""
    return normalize(torch.randn(n, dim, generator=rng), dim=-1)


@dataclass(frozen=True)
class LatentSchedule:
    """How long a world keeps its latent, uniform in control steps, and how often it starts with its clip's own."""

    dim: int
    shortest: int
    longest: int
    clip_prob: float  # share of episodes that begin with the latent of the clip they begin in

    def lifetimes(self, n: int, rng: Generator) -> Tensor:
        return torch.randint(self.shortest, self.longest + 1, (n,), generator=rng)


class SkillEnv:
    """CharacterEnv with a latent per world: the ASE training environment. (Peng et al. 2022, section 5.)

    Rewards are terms of the rollout: the environment itself pays nothing and only records the style window.
    """

    def __init__(
        self,
        env: CharacterEnv,
        action_scale: ActionScale,
        schedule: LatentSchedule,
        clip_latents: Tensor,
        rng: Generator,
    ):
        self.env, self.action_scale, self.schedule, self._rng = env, action_scale, schedule, rng
        self.num_envs = env.num_envs
        self.clip_latents = clip_latents  # (C, dim), kept up to date by the trainer as the encoder learns
        self.z = sphere(self.num_envs, schedule.dim, rng)
        self.left = schedule.lifetimes(self.num_envs, rng)  # steps until the next change
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        if not len(ids):
            return
        self.env.reset(ids)
        z = sphere(len(ids), self.schedule.dim, self._rng)
        own = torch.rand(len(ids), generator=self._rng) < self.schedule.clip_prob
        self.z[ids] = torch.where(own[:, None], self.clip_latents[self.env.clip[ids]], z)
        self.left[ids] = self.schedule.lifetimes(len(ids), self._rng)

    def observe(self) -> Batch:
        return {"obs": self.env.obs(), "z": self.z.clone()}

    def step(self, action: Tensor) -> Step:
        outcome = self.env.step(self.action_scale.target(action))
        self.left -= 1
        expired = (self.left <= 0).nonzero()[:, 0]
        self.z[expired] = sphere(len(expired), self.schedule.dim, self._rng)
        self.left[expired] = self.schedule.lifetimes(len(expired), self._rng)
        return Step(
            next_obs=self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=outcome.fell | outcome.broken,
            truncated=outcome.timed_out,
            extras={"window": self.env.windows()},
        )

    def snapshot(self) -> dict[str, Tensor]:
        own = {"z": self.z.clone(), "left": self.left.clone(), "skill_rng": self._rng.get_state()}
        return {**self.env.snapshot(), **own, "clip_latents": self.clip_latents.clone()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.env.restore(snapshot)
        self.z, self.left = snapshot["z"].clone(), snapshot["left"].clone()
        self.clip_latents = snapshot["clip_latents"].clone()
        self._rng.set_state(snapshot["skill_rng"])
