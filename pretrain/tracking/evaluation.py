"""Measures how well a policy tracks each clip: how often to its end, and how closely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.evaluation.intervals import interval, share_interval
from pretrain.motion.clip import CONTROL_RATE
from pretrain.rl.rollout import Batch
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.env import TrackingEnv
from pretrain.tracking.training import make_env
from pretrain.training_data import TrainingData

MeanPolicy = Callable[[Batch], Tensor]  # -> mean actions (N, J)
Measures = dict[str, dict[str, Any]]  # clip -> measure -> n, mean and 95 % interval
START_SHARE = 0.1  # of a clip that is not cyclic, in which its episodes begin
END_DISTANCE = 0.2  # m, from the reference at the end of a completed episode


@dataclass(frozen=True)
class Played:
    """One episode of each of N worlds."""

    completed: Tensor  # (N,) bool: it did not terminate
    steps: Tensor  # (N,) control steps until its end
    distance: Tensor  # (N,) m, mean over its steps
    final_distance: Tensor  # (N,) m, of its last step
    reward: Tensor  # (N,) sum over its steps


def evaluate(cfg: TrackingConfig, data: TrainingData, policy: MeanPolicy) -> Measures:
    """Of every clip that is no mirror image, over `cfg.eval.episodes` episodes under mean actions.
    They begin anywhere in a cyclic clip, in the first tenth of any other.

    `completed`: share of episodes that last to the end of the clip, for a cyclic one
    `cfg.episode_length`, and are within END_DISTANCE of the reference there. `seconds`: until the
    end or a failure. `body_error`: distance of root and key bodies from the reference's (m), over
    the completed episodes. `reward`: DeepMimic's per control step, 0 after a failure."""
    library = data.library
    clips = [clip for clip, original in enumerate(library.originals) if clip == original]
    worlds = torch.tensor(clips).repeat_interleave(cfg.eval.episodes)
    rng = Generator().manual_seed(cfg.eval.seed)
    env = make_env(cfg, data, len(worlds), rng)
    durations = library.durations[worlds]
    cyclic = env.references.cyclic[worlds]
    share = torch.where(cyclic, 1.0, START_SHARE) * torch.rand(len(worlds), generator=rng)
    times = share * durations
    env.env.begin(torch.arange(len(worlds)), worlds, times)
    remaining = ((durations - times) * CONTROL_RATE).ceil().clamp(1, env.env.episode_length)
    planned = torch.where(cyclic, float(env.env.episode_length), remaining)
    played = play(env, policy)
    return {library.names[clip]: summarize(played, planned, worlds == clip) for clip in clips}


def summarize(played: Played, planned: Tensor, chosen: Tensor) -> dict[str, Any]:
    """The measures of `chosen` (N,) episodes, which would have lasted `planned` (N,) steps."""
    completed = played.completed & (played.final_distance < END_DISTANCE)
    return {
        "completed": share_interval(completed[chosen].float()),
        "seconds": interval(played.steps[chosen] / CONTROL_RATE),
        "body_error": interval(played.distance[chosen & completed]),
        "reward": interval((played.reward / planned)[chosen]),
    }


def play(env: TrackingEnv, policy: MeanPolicy) -> Played:
    """One episode of each world under mean actions."""
    runs = torch.ones(env.num_envs, dtype=torch.bool)
    failed = torch.zeros_like(runs)
    steps = torch.zeros(env.num_envs)
    distance = torch.zeros(env.num_envs)
    final_distance = torch.zeros(env.num_envs)
    reward = torch.zeros(env.num_envs)
    while runs.any():
        with torch.no_grad():
            step = env.step(policy(env.observe()))
        steps += runs
        distance += torch.where(runs, step.extras["distance"], 0.0)
        final_distance = torch.where(runs, step.extras["distance"], final_distance)
        reward += torch.where(runs, step.reward, 0.0)
        failed |= runs & step.terminated
        runs &= ~(step.terminated | step.truncated)
    return Played(~failed, steps, distance / steps, final_distance, reward)
