"""A warm start before any simulation: from noisy clip states, aim where the clip goes next."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from pretrain.ase.latents import sphere
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.rl.learner import finite
from pretrain.rl.nets import GaussianPolicy
from pretrain.sim.env import ActionScale, pd_target
from pretrain.sim.features import proprioception
from pretrain.sim.ground import SLACK, Ground


def clone(
    policy: GaussianPolicy,
    library: MotionLibrary,
    scale: ActionScale,
    clip_latents: Tensor,
    ground: Ground,
    *,
    steps: int,
    lr: float,
    batch: int,
    rng: Generator,
) -> float:
    """Fit `policy`'s mean to (clip state + noise, the clip's latent + noise) -> target. Returns the last loss.

    Who lies gets up under any latent. Diverged if that loss is not finite.
    """
    optimizer = torch.optim.Adam(policy.parameters(), lr)
    loss = torch.zeros(())
    for _ in range(steps):
        ids, times = library.sample(batch, rng)
        state, ahead = library.at(ids, times), library.at(ids, times + 1 / CONTROL_RATE)
        action = scale.action(pd_target(ahead))
        gets_up = ground.rising[ids] & (state.root_pos[:, 2] < SLACK * ground.standing)
        z = torch.where(gets_up[:, None], sphere(batch, clip_latents.shape[1], rng), _near(clip_latents[ids], rng))
        obs = {"obs": proprioception(_disturbed(state, rng)), "z": z}
        loss = (policy(obs) - action).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return finite("the policy's warm start", loss.detach())


def _disturbed(state: CharacterState, rng: Generator) -> CharacterState:
    """Noise of the size that a first second of imperfect tracking brings."""

    def noisy(x: Tensor, size: float) -> Tensor:
        return x + size * torch.randn(x.shape, generator=rng)

    return CharacterState(
        root_pos=noisy(state.root_pos, 0.02),  # m
        root_rot=normalize(noisy(state.root_rot, 0.03), dim=-1),
        root_vel=noisy(state.root_vel, 0.2),  # m/s
        root_ang_vel=noisy(state.root_ang_vel, 0.5),  # rad/s
        joint_pos=noisy(state.joint_pos, 0.1),  # rad
        joint_vel=noisy(state.joint_vel, 1.0),  # rad/s
    )


def _near(z: Tensor, rng: Generator) -> Tensor:
    """Half way from z to a random direction: 45 degrees off on average."""
    return normalize(z + sphere(len(z), z.shape[-1], rng), dim=-1)
