"""Distillation of a trained policy into one that depends on its latent.

A policy that has learned each clip under its own latent barely depends on the latent: the state
determines the clip, and a walk continues under the z of a stand (docs/training.md). Here the policy
is fitted in states that it visits itself: under the latent of a clip of another velocity it takes
its action at that clip's nearest pose; under all other latents its action is kept. It then loses
balance in such switches, and learns to keep it in the following training. (Policy distillation as
in Rusu et al. 2016, with the policy itself as teacher.)"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import cos, pi

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.ase.latents import sample_on_sphere
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.characters.state import unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.rl.adam import Adam
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.learner import check_finite
from pretrain.rl.nets import GaussianPolicy
from pretrain.rl.rollout import Batch
from pretrain.sim.features import proprioception
from pretrain.sim.nearest import NearestRows
from pretrain.sim.velocity_range import read_velocity_ranges

VISITED_STEPS = 240  # control steps of each world
LATENT_NOISE = 0.6  # largest multiple of a random direction added to a latent
FINAL_LR_SHARE = 0.05  # of the learning rate, after cosine decay


@dataclass(frozen=True)
class VisitedStates:
    """M states in which a policy moved at its latent clip's velocity."""

    obs: Tensor  # (M, 13 + 2 J)
    z: Tensor  # (M, D)
    joint_pos: Tensor  # (M, J) rad
    velocity: Tensor  # (M, 3) forward m/s, left m/s, turn rate rad/s, averaged over a second


@torch.no_grad()
def visit_states(env: AssistedEnv, policy: GaussianPolicy, rng: Generator) -> VisitedStates:
    """States that `policy` visits with its noise, from the start of episodes. Worlds that are down,
    or not at the velocities of their latent's clip, are left out."""
    env.reset(torch.arange(env.num_envs))
    parts: list[VisitedStates] = []
    for _ in range(VISITED_STEPS):
        obs = env.observe()
        on_clip = (env.velocity.distance(env.ase_env.z_clip) <= 1) & ~env.env.falls.is_down
        joint_pos = env.env.state().joint_pos
        rows = (obs["obs"], obs["z"], joint_pos, env.velocity.mean)
        parts.append(VisitedStates(*(x[on_clip] for x in rows)))
        mean = policy(obs)
        step = env.step(mean + policy.std * torch.randn(mean.shape, generator=rng))
        assert step.resets is not None
        env.reset(step.resets.nonzero()[:, 0])
    fields = ("obs", "z", "joint_pos", "velocity")
    return VisitedStates(*(torch.cat([getattr(part, name) for part in parts]) for name in fields))


def distill_latents(
    policy: GaussianPolicy,
    visited: VisitedStates,
    library: MotionLibrary,
    clip_latents: Tensor,
    config: GradientSteps,
    *,
    rng: Generator,
) -> float:
    """Fit `policy` in the visited states: half of the rows with their own latent, half with that of
    a random clip, of `clip_latents` (C, D). Returns the last loss; Diverged if it is not finite."""
    teacher = deepcopy(policy)
    frames = unflatten(library.frames)
    poses = NearestRows(frames.joint_pos, library.lengths)
    ranges = read_velocity_ranges(library)
    optimizer = Adam(policy.parameters(), config.lr)
    half = config.batch // 2
    loss = torch.zeros(())
    for step in range(config.steps):
        optimizer.lr = config.lr * cosine_decay(step / config.steps)
        rows = torch.randint(len(visited.obs), (config.batch,), generator=rng)
        clips, _ = library.sample(half, rng)
        z = torch.cat([_draw_near(clip_latents[clips], rng), visited.z[rows[half:]]])
        away = (ranges.excess(visited.velocity[rows[:half]], clips) > 1).nonzero()[:, 0]
        nearest = frames[poses.find(visited.joint_pos[rows[away]], clips[away])]
        obs: Batch = {"obs": visited.obs[rows], "z": z}
        with torch.no_grad():
            target = teacher(obs)
            target[away] = teacher({"obs": proprioception(nearest), "z": z[away]})
        loss = (policy(obs) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return check_finite("the distillation of the policy", loss.detach())


def cosine_decay(share: float) -> float:
    """From 1 at the beginning to FINAL_LR_SHARE at the end of a fit, of which `share` is done."""
    return FINAL_LR_SHARE + (1 - FINAL_LR_SHARE) * (1 + cos(pi * share)) / 2


def _draw_near(z: Tensor, rng: Generator) -> Tensor:
    """Latents up to LATENT_NOISE off z (n, D), (n, D)."""
    size = LATENT_NOISE * torch.rand(len(z), 1, generator=rng)
    return normalize(z + size * sample_on_sphere(len(z), z.shape[-1], rng), dim=-1)
