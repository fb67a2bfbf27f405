"""Measures how well a policy tracks each clip: how often to its end, and how closely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.evaluation.intervals import interval, share_interval
from pretrain.rl.rollout import Batch
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.env import TrackingEnv
from pretrain.tracking.training import make_env
from pretrain.training_data import TrainingData

Policy = Callable[[Batch], Tensor]  # -> mean actions
Measures = dict[str, dict[str, Any]]  # clip -> measure -> n, mean and 95 % interval


def evaluate(cfg: TrackingConfig, data: TrainingData, policy: Policy) -> Measures:
    """Of every clip that is no mirror image, over `cfg.eval.episodes` episodes under mean actions.

    An episode begins anywhere in the clip's first half. `completed`: it lasts to the end of the
    clip, or of a cyclic clip for `cfg.episode_length`. `body_error`: distance of root and key
    bodies from the reference's (m), and `reward`, DeepMimic's, both averaged over its control
    steps."""
    library = data.library
    clips = [clip for clip, original in enumerate(library.originals) if clip == original]
    worlds = torch.tensor(clips).repeat_interleave(cfg.eval.episodes)
    rng = Generator().manual_seed(cfg.eval.seed)
    env = make_env(cfg, data, len(worlds), rng)
    times = 0.5 * library.durations[worlds] * torch.rand(len(worlds), generator=rng)
    env.env.begin(torch.arange(len(worlds)), worlds, times)
    played = play(env, policy)
    rows = zip(clips, *(x.split(cfg.eval.episodes) for x in played), strict=True)
    return {
        library.names[clip]: {
            "completed": share_interval(completed.float()),
            "body_error": interval(distance),
            "reward": interval(reward),
        }
        for clip, completed, distance, reward in rows
    }


def play(env: TrackingEnv, policy: Policy) -> tuple[Tensor, Tensor, Tensor]:
    """One episode of each world under mean actions: whether it was completed (N,) bool, and its
    means of `distance` (N,) m and reward (N,)."""
    num_envs = env.num_envs
    runs = torch.ones(num_envs, dtype=torch.bool)
    failed = torch.zeros(num_envs, dtype=torch.bool)
    steps = torch.zeros(num_envs)
    distance = torch.zeros(num_envs)
    reward = torch.zeros(num_envs)
    while runs.any():
        with torch.no_grad():
            step = env.step(policy(env.observe()))
        steps += runs
        distance += torch.where(runs, step.extras["distance"], 0.0)
        reward += torch.where(runs, step.reward, 0.0)
        failed |= runs & step.terminated
        runs &= ~(step.terminated | step.truncated)
    return ~failed, distance / steps, reward / steps
