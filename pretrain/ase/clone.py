"""Warm start of the policy without simulation: from noisy clip states, regress the target of the
clip's next state."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.ase.latents import sample_on_sphere
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.rl.adam import Adam
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.learner import check_finite
from pretrain.rl.nets import GaussianPolicy
from pretrain.sim.env import ActionScale, pd_target
from pretrain.sim.features import proprioception
from pretrain.sim.ground import SLACK, Ground


@dataclass(frozen=True)
class CloneData:
    library: MotionLibrary
    scale: ActionScale
    clip_latents: Tensor  # (C, D)
    ground: Ground
    is_learned: Tensor | None = None  # (C,) bool, clips on which the policy is kept


def clone(policy: GaussianPolicy, data: CloneData, config: GradientSteps, rng: Generator) -> float:
    """Fit `policy`'s mean to (clip state + noise, the clip's latent + noise) -> target. Returns the
    last loss.

    Low states of a clip that rises are trained under any latent. On `is_learned` clips the target
    is the policy's mean before the fit. Raises Diverged if the last loss is not finite."""
    library = data.library
    before = deepcopy(policy)
    optimizer = Adam(policy.parameters(), config.lr)
    loss = torch.zeros(())
    for _ in range(config.steps):
        ids, times = library.sample(config.batch, rng)
        state = library.at(ids, times)
        action = data.scale.action(pd_target(library.at(ids, times + 1 / CONTROL_RATE)))
        z = _draw_latents(data, ids, state, rng)
        obs = {"obs": proprioception(_add_noise(state, rng)), "z": z}
        if data.is_learned is not None:
            with torch.no_grad():
                action = torch.where(data.is_learned[ids, None], before(obs), action)
        loss = (policy(obs) - action).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return check_finite("the policy's warm start", loss.detach())


def _draw_latents(data: CloneData, ids: Tensor, state: CharacterState, rng: Generator) -> Tensor:
    """Latents for `state` (n,) of clips `ids` (n,): around the clip's own, but uniform where the
    clip rises and the root is low, (n, D)."""
    gets_up = data.ground.rising[ids] & (state.root_pos[:, 2] < SLACK * data.ground.standing)
    anywhere = sample_on_sphere(len(ids), data.clip_latents.shape[1], rng)
    return torch.where(gets_up[:, None], anywhere, _perturb(data.clip_latents[ids], rng))


def _add_noise(state: CharacterState, rng: Generator) -> CharacterState:
    """Noise as large as the tracking errors of the first second."""

    def perturb(x: Tensor, size: float) -> Tensor:
        return x + size * torch.randn(x.shape, generator=rng)

    return CharacterState(
        root_pos=perturb(state.root_pos, 0.02),  # m
        root_rot=normalize(perturb(state.root_rot, 0.03), dim=-1),
        root_vel=perturb(state.root_vel, 0.2),  # m/s
        root_ang_vel=perturb(state.root_ang_vel, 0.5),  # rad/s
        joint_pos=perturb(state.joint_pos, 0.1),  # rad
        joint_vel=perturb(state.joint_vel, 1.0),  # rad/s
    )


def _perturb(z: Tensor, rng: Generator) -> Tensor:
    """Half way from z (n, D) to a random direction, on average 45 degrees off."""
    return normalize(z + sample_on_sphere(len(z), z.shape[-1], rng), dim=-1)
