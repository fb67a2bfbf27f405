"""Latents: where they lie, how long they last, and which clip each belongs to."""

from __future__ import annotations

import torch

from pretrain.ase.latents import LatentSchedule, SkillEnv, sphere
from pretrain.sim.backend import make_backend
from pretrain.sim.env import ActionScale, CharacterEnv


def test_latents_are_unit_and_lifetimes_in_range(rng):
    torch.testing.assert_close(sphere(100, 16, rng).norm(dim=-1), torch.ones(100))
    lifetimes = LatentSchedule(16, 1, 150, 0.5).lifetimes(5000, rng)
    assert lifetimes.min() == 1
    assert lifetimes.max() == 150


def test_every_latent_belongs_to_a_clip_and_a_share_are_its_own(material, humanoid):
    rng = torch.Generator().manual_seed(0)
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 256, 1),
        humanoid.skeleton,
        material.library,
        window=3,
        episode_length=300,
        rng=torch.Generator().manual_seed(1),
    )
    latents = sphere(len(material.library.names), 8, rng)
    scale = ActionScale.of(material.library, 28)
    skills = SkillEnv(env, scale, LatentSchedule(8, 1, 3, 0.5), latents, rng)

    def own() -> torch.Tensor:
        return (skills.z == latents[skills.z_clip]).all(-1)

    assert torch.equal(skills.z_clip[own()], env.clip[own()])  # an episode begins with the skill it begins in
    for _ in range(4):
        before = skills.z_clip.clone()
        step = skills.step(torch.zeros(256, 28))
        assert torch.equal(step.extras["z_clip"], before)  # of the latent that was acted under, not of the next
        assert 0.35 < own().float().mean() < 0.65
        assert torch.equal(skills.z_clip, (skills.z @ latents.T).argmax(-1))
    torch.testing.assert_close(skills.z.norm(dim=-1), torch.ones(256))
