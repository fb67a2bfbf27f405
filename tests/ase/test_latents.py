"""Sampling of latents, their lifetimes and nearest clips, and the plain ASE environment."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.ase.env import AseEnv
from pretrain.ase.latents import LatentSampling, draw_nearest_to, sample_on_sphere
from pretrain.sim.backend import make_backend
from pretrain.sim.env import ActionScale, CharacterEnv, EpisodeConfig
from pretrain.sim.falls import NO_RECOVERY, Recovery


def make(
    training_data,
    humanoid,
    *,
    longest: int = 3,
    recovery: Recovery = NO_RECOVERY,
    near: torch.Tensor | None = None,
) -> AseEnv:
    rng = torch.Generator().manual_seed(0)
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 256, 1),
        humanoid.skeleton,
        training_data.library,
        EpisodeConfig(window=3, length=300, recovery=recovery),
        rng=torch.Generator().manual_seed(1),
    )
    latents = sample_on_sphere(len(training_data.library.names), 8, rng)
    sampling = LatentSampling(8, longest, longest, 0.5)
    return AseEnv(
        env,
        ActionScale.from_library(training_data.library),
        sampling,
        latents,
        rng=rng,
        near_probs=None if near is None else lambda: near,
    )


def test_latents_are_unit_and_lifetimes_in_range(rng):
    torch.testing.assert_close(sample_on_sphere(100, 16, rng).norm(dim=-1), torch.ones(100))
    lifetimes = LatentSampling(16, 1, 150, 0.5).draw_lifetimes(5000, rng)
    assert lifetimes.min() == 1
    assert lifetimes.max() == 150


def test_near_draws_cover_the_clips_nearest_latent_region(rng):
    latents = sample_on_sphere(6, 8, rng)
    clips = torch.arange(6).repeat(200)
    z = draw_nearest_to(clips, latents, rng)
    torch.testing.assert_close(z.norm(dim=-1), torch.ones(1200))
    assert torch.equal((z @ latents.T).argmax(-1), clips)
    anywhere = sample_on_sphere(20_000, 8, rng)
    belong = anywhere[(anywhere @ latents.T).argmax(-1) == 0]
    # all of them, not the nearest
    torch.testing.assert_close(z[clips == 0].mean(0), belong.mean(0), atol=0.1, rtol=0)


def test_draw_falls_back_to_clip_latent_if_its_region_is_tiny(rng):
    angles = torch.tensor([0.0, 0.001, -0.001])
    latents = torch.stack([angles.cos(), angles.sin()], -1)
    z = draw_nearest_to(torch.zeros(50, dtype=torch.long), latents, rng)
    assert (z == latents[0]).all(-1).sum() > 40
    assert ((z @ latents.T).argmax(-1) == 0).all()


def test_z_clip_is_nearest_clip_and_half_of_z_are_clip_latents(training_data, humanoid):
    skills = make(training_data, humanoid)
    env = skills.env
    latents = skills.clip_latents

    def own() -> torch.Tensor:
        return (skills.z == latents[skills.z_clip]).all(-1)

    # at a reset, an own latent is that of the start clip
    assert torch.equal(skills.z_clip[own()], env.clip[own()])
    for _ in range(4):
        before = skills.z_clip.clone()
        step = skills.step(torch.zeros(256, 28))
        # of the latent that was acted under, not of the next
        assert torch.equal(step.extras["z_clip"], before)
        assert 0.35 < own().float().mean() < 0.65
        assert torch.equal(skills.z_clip, (skills.z @ latents.T).argmax(-1))
    torch.testing.assert_close(skills.z.norm(dim=-1), torch.ones(256))


def test_near_prob_1_draws_initial_z_near_the_start_clip(training_data, humanoid):
    plain = make(training_data, humanoid)
    assert not torch.equal(plain.z_clip, plain.env.clip)
    near = torch.ones(len(training_data.library.names))
    skills = make(training_data, humanoid, near=near)
    assert torch.equal(skills.z_clip, skills.env.clip)
    own = (skills.z == skills.clip_latents[skills.z_clip]).all(-1)
    assert 0.3 < own.float().mean() < 0.7
    skills.step(torch.zeros(256, 28))
    skills.steps_to_resample[:] = 1
    skills.step(torch.zeros(256, 28))  # later latents are drawn anywhere
    assert (skills.z_clip != skills.env.clip).float().mean() > 0.3
    near.fill_(0.5)
    skills.reset(torch.arange(256))
    # half are drawn near the start clip, and half of the others anywhere
    assert 0.1 < (skills.z_clip != skills.env.clip).float().mean() < 0.35


def test_reset_does_not_modify_tensors_returned_by_step(training_data, humanoid):
    skills = make(training_data, humanoid)
    step = skills.step(torch.zeros(256, 28))
    tensors = {**step.extras, **{f"next {name}": x for name, x in step.next_obs.items()}}
    before = {name: x.clone() for name, x in tensors.items()}
    skills.reset(torch.arange(256))
    assert not torch.equal(skills.env.windows(), before["window"])
    assert [name for name in tensors if not torch.equal(tensors[name], before[name])] == []


@pytest.mark.parametrize("own_return", [False, True])
def test_next_obs_equals_observe_unless_the_episode_ended(every_clip, humanoid, own_return):
    skills = make(every_clip, humanoid, longest=8)
    skills.sampling = replace(skills.sampling, own_return=own_return)
    some = torch.tensor([3, 1, 200])
    ends = 0
    for _ in range(20):
        step = skills.step(torch.zeros(256, 28))
        over = step.terminated | step.truncated
        assert step.resets is not None
        skills.reset(step.resets.nonzero()[:, 0])
        now = skills.observe()
        of_some = skills.observe(some)
        for name, seen in now.items():
            assert torch.equal(seen[~over], step.next_obs[name][~over]), name
            torch.testing.assert_close(of_some[name], seen[some])
        ends += int(over.sum())
    assert ends > 0


@pytest.mark.parametrize("own_return", [False, True])
def test_own_return_truncates_at_z_change_and_episode_continues(
    training_data, humanoid, own_return
):
    skills = make(training_data, humanoid, longest=3)
    skills.sampling = replace(skills.sampling, own_return=own_return)
    for left in (2, 1, 0):
        z = skills.z.clone()
        still = torch.zeros(256, 28)
        step = skills.step(still)
        over = torch.full((256,), left == 0)
        assert not (skills.z != z).any(-1)[~over].any()
        assert torch.equal(step.truncated, over & ~step.terminated & own_return)
        assert step.resets is not None
        assert torch.equal(step.resets, step.terminated)
        seen = z if own_return else skills.z  # the z that the next state is valued under
        torch.testing.assert_close(step.next_obs["z"], seen, rtol=0, atol=0)
        skills.reset(step.resets.nonzero()[:, 0])


def test_fall_sets_terminated_even_if_the_episode_continues(every_clip, humanoid):
    skills = make(every_clip, humanoid, longest=300, recovery=Recovery(90, after_falls=True))
    failed = torch.zeros(256, dtype=torch.bool)
    for _ in range(60):
        step = skills.step(torch.zeros(256, 28))
        down = skills.env.falls.steps_down
        assert step.resets is not None
        # one termination per fall, and no recovery time is over yet
        assert torch.equal(step.terminated & ~step.resets, down == 1)
        failed |= step.terminated
    assert failed.sum() > 64


def test_a_change_to_a_standing_clip_while_lying_is_no_fall(every_clip, humanoid):
    skills = make(every_clip, humanoid, longest=300, recovery=Recovery(90, after_falls=True))
    crawl = every_clip.library.names.index("crawl")
    every = torch.arange(256)
    skills.env.begin(every, torch.full((256,), crawl), torch.rand(256))
    skills.z_clip[:] = crawl
    skills.steps_to_resample[:] = 2
    steps = [skills.step(torch.zeros(256, 28)) for _ in range(3)]
    assert (skills.env.falls.steps_down > 1).sum() > 32
    assert not any(step.terminated.any() for step in steps)


def test_near_latent_probability_applies_per_clip(training_data, humanoid):
    near = torch.zeros(len(training_data.library.names))
    near[0] = 1.0
    skills = make(training_data, humanoid, near=near)
    first = skills.env.clip == 0
    assert first.any()
    assert (skills.z_clip == skills.env.clip)[first].all()
    assert not (skills.z_clip == skills.env.clip)[~first].all()


def test_restored_snapshot_continues_bit_identical(every_clip, humanoid):
    first, second = (
        make(every_clip, humanoid, recovery=Recovery(90, fall_init_prob=0.3)) for _ in range(2)
    )

    def run(skills: AseEnv) -> torch.Tensor:
        for _ in range(10):
            step = skills.step(torch.zeros(256, 28))
            assert step.resets is not None
            skills.reset(step.resets.nonzero()[:, 0])
        return torch.cat([skills.env.state().flatten(), skills.z], -1)

    run(first)
    snapshot = first.snapshot()
    ahead = run(first)
    second.restore(snapshot)
    assert torch.equal(run(second), ahead)


def test_plain_ase_has_no_aid_observations_or_extras(training_data, humanoid):
    skills = make(training_data, humanoid)
    step = skills.step(torch.zeros(256, 28))
    assert set(skills.observe()) == {"obs", "z"}
    assert set(step.extras) == {"window", "z_clip"}
