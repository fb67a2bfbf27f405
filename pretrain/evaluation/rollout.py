"""Rollouts of a policy: one skill held, or random skills in turn.

A policy maps states and latents to joint targets: the published graph, or in tests a known
function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.ase.latents import LatentSampling, sample_on_sphere
from pretrain.sim.env import CharacterEnv, Outcome

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]  # states (N, S), z (N, D) -> targets (N, J)
NearestClip = Callable[[Tensor], Tensor]  # z (N, D) -> clips (N,), which define falls

DISTURBANCE = 0.02  # rad on each joint at the start, so that repetitions differ


@dataclass(frozen=True)
class RandomSkillStep:
    """One control step of N worlds under random skills."""

    state: Tensor  # (N, S) before the step
    z: Tensor  # (N, D) of the step
    clip_changed: Tensor  # (N,) bool: the clip that defines falls differs from the last step's
    standing: Tensor  # (N,) bool: no final fall so far
    outcome: Outcome


def advance(act: Act, env: CharacterEnv, z: Tensor, clips: Tensor | None) -> Outcome:
    """One control step under z (N, D); `clips` (N,) define falls."""
    targets = act(env.state().flatten().numpy(), z.numpy())
    return env.step(torch.from_numpy(targets), clips)


def hold_skill(
    act: Act, env: CharacterEnv, z: Tensor, clips: Tensor, steps: int
) -> Iterator[Outcome]:
    """Hold z (N, D) for `steps` from the worlds' present states, without resets after falls."""
    for _ in range(steps):
        yield advance(act, env, z, clips)


def random_skill_rollout(
    act: Act, env: CharacterEnv, sampling: LatentSampling, rng: Generator, nearest: NearestClip
) -> Iterator[RandomSkillStep]:
    """One episode per world, from its present state, under skills redrawn by `sampling`."""
    n = env.num_envs
    z = sample_on_sphere(n, sampling.dim, rng)
    left = sampling.draw_lifetimes(n, rng)
    clips = nearest(z)
    changed = torch.zeros(n, dtype=torch.bool)
    standing = torch.ones(n, dtype=torch.bool)
    for _ in range(env.episode_length):
        state = env.state().flatten()
        outcome = advance(act, env, z, clips)
        standing = standing & ~(outcome.fell | outcome.broken)
        yield RandomSkillStep(state, z, changed, standing, outcome)
        left -= 1
        expired = (left <= 0).nonzero()[:, 0]
        z = z.clone()
        z[expired] = sample_on_sphere(len(expired), sampling.dim, rng)
        left[expired] = sampling.draw_lifetimes(len(expired), rng)
        before = clips
        clips = nearest(z)
        changed = clips != before


def start_in_clips(env: CharacterEnv, clips: Tensor, times: Tensor, rng: Generator) -> None:
    """Put every world into the state of its clip (N,) at times (N,) s, with noise on each joint."""
    ids = torch.arange(env.num_envs)
    env.begin(ids, clips, times)
    state = env.library.at(clips, times)
    noise = DISTURBANCE * torch.randn(state.joint_pos.shape, generator=rng)
    env.backend.place(ids, replace(state, joint_pos=state.joint_pos + noise))


def start_anywhere(env: CharacterEnv, clips: Tensor, rng: Generator) -> None:
    """Put every world into a random state of its clip (N,), with noise on each joint."""
    share = torch.rand(len(clips), generator=rng)
    start_in_clips(env, clips, share * env.library.durations[clips], rng)
