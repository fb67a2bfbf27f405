"""AseEnv: the environment in which each world has a latent, redrawn after random times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSampling, draw_nearest_to, sample_on_sphere
from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ALL, ActionScale, CharacterEnv, Outcome
from pretrain.sim.tensor_state import TensorState


class AseEnv(TensorState):
    """CharacterEnv with a latent per world: the ASE training environment. (Peng et al. 2022,
    section 5.)

    Observations are `obs` (N, 13 + 2 J) and `z` (N, dim). The environment's reward is 0; rewards
    are computed from the rollout, which has the style window. `near_probs` is called at every
    reset: of the first latents that are not a clip's own, it gives the share drawn nearest to the
    clip in which the episode begins, (C,); by default 0."""

    state_fields = ("z", "z_clip", "steps_to_resample")

    def __init__(
        self,
        env: CharacterEnv,
        action_scale: ActionScale,
        sampling: LatentSampling,
        clip_latents: Tensor,
        *,
        rng: Generator,
        near_probs: Callable[[], Tensor] | None = None,
    ):
        self.env = env
        self.action_scale = action_scale
        self.sampling = sampling
        self._rng = rng
        self._near_probs = near_probs or (lambda: torch.zeros(len(clip_latents)))
        self.num_envs = env.num_envs
        self.clip_latents = clip_latents  # (C, dim), the encoder's: the warm start writes to it
        self.z = torch.zeros(self.num_envs, sampling.dim)
        # the clip whose own latent is nearest to z
        self.z_clip = torch.zeros(self.num_envs, dtype=torch.long)
        # control steps until the next change
        self.steps_to_resample = torch.zeros(self.num_envs, dtype=torch.long)
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        """Start new episodes in worlds `ids` (n,), each with a new latent."""
        if not len(ids):
            return
        self.env.reset(ids)
        clips = self.env.clip[ids]
        self._assign_latents(ids, clips, self._near_probs()[clips])
        self.env.falls.allow_recovery(ids, clips, self.z_clip[ids])

    def _assign_latents(self, ids: Tensor, clips: Tensor, near: Tensor | None = None) -> None:
        """Draw latents for worlds `ids` (n,), and set `z`, `z_clip` and `steps_to_resample`.

        A share `clip_prob` of the latents are those of `clips` (n,); of the others, shares `near`
        (n,) are drawn nearest to these, the remainder uniformly on the sphere."""
        from_clip = torch.rand(len(ids), generator=self._rng) < self.sampling.clip_prob
        z = sample_on_sphere(len(ids), self.sampling.dim, self._rng)
        if near is not None:
            close = (torch.rand(len(ids), generator=self._rng) < near).nonzero()[:, 0]
            z[close] = draw_nearest_to(clips[close], self.clip_latents, self._rng)
        self.z[ids] = torch.where(from_clip[:, None], self.clip_latents[clips], z)
        self.z_clip[ids] = torch.where(from_clip, clips, (z @ self.clip_latents.T).argmax(-1))
        self.steps_to_resample[ids] = self.sampling.draw_lifetimes(len(ids), self._rng)

    def observe(self, ids: Tensor | None = None) -> Batch:
        """The observations of worlds `ids` (n,), by default of all: `obs` (n, 13 + 2 J) and `z`
        (n, dim)."""
        rows = ALL if ids is None else ids
        return {"obs": self.env.obs(rows), "z": self.z[rows].clone()}

    def step(self, action: Tensor) -> Step:
        """Actions (N, J), in units of the action scale, held for one control step.

        `terminated`: a final fall, a broken state, or a world that has just gone down, which is not
        reset, so that getting up is learned. `truncated`: out of time or, with `own_return`, a
        change of latent. `extras`: `window` (N, W * F), and `z_clip` (N,), the clip that the
        discriminator compares it with."""
        clips = self.z_clip.clone()
        outcome = self.advance(action)
        failed = outcome.fell | outcome.broken
        terminated = failed | outcome.went_down
        own_obs = self.observe() if self.sampling.own_return else None
        cut = self.change_latents(clips, terminated)
        return Step(
            next_obs=own_obs or self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=terminated,
            truncated=outcome.timed_out | cut,
            extras=self.make_extras(clips),
            resets=failed | outcome.timed_out,
        )

    def make_extras(self, clips: Tensor) -> Batch:
        """Inputs of the step's rewards; windows are compared with `clips` (N,)."""
        # a reset overwrites the env's windows
        return {"window": self.env.windows().clone(), "z_clip": clips}

    def advance(self, action: Tensor) -> Outcome:
        """One control step of the characters under actions (N, J); latents do not change."""
        return self.env.step(self.action_scale.target(action), self.z_clip)

    def change_latents(self, clips: Tensor, terminated: Tensor) -> Tensor:
        """Count one control step of every latent and redraw expired ones, in worlds that followed
        `clips` (N,). Where the old clip may touch the ground with a body and the new one may not,
        the world has time to get up (`Falls.allow_recovery`).

        Returns where a change cuts the return, (N,) bool: with `own_return`, in worlds that have
        not `terminated` (N,)."""
        self.steps_to_resample -= 1
        expired = self.steps_to_resample <= 0
        ids = expired.nonzero()[:, 0]
        if len(ids):
            new_clips, _ = self.env.library.sample(len(ids), self._rng)
            self._assign_latents(ids, new_clips)
            self.env.falls.allow_recovery(ids, clips[ids], self.z_clip[ids])
        return expired & ~terminated & self.sampling.own_return

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
