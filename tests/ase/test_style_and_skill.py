"""Discriminator, encoder and latents: what their losses pull towards, on data with a known answer."""

from __future__ import annotations

import pytest
import torch

from pretrain.ase.latents import LatentSchedule, sphere
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.skill import clip_latents, encoder_loss, skill_reward, warm_encoder, with_diversity
from pretrain.ase.style import Replay, demonstrations, style_loss, style_reward
from pretrain.rl.ppo import policy_loss
from pretrain.rl.rollout import Rollout

SIZES = Sizes(latent_dim=8, policy=(32,), disc=(64,), enc=(64,), action_std=0.1)


@pytest.fixture
def nets(material, rng):
    return make_nets(SIZES, material.library, material.demos, 28, rng)


def rollout(**extras: torch.Tensor) -> Rollout:
    n = len(next(iter(extras.values())))
    zero, flag = torch.zeros(1, n), torch.zeros(1, n, dtype=torch.bool)
    named = {name: x[None] for name, x in extras.items()}
    return Rollout({"z": named.pop("z", zero)}, {}, zero, zero, zero, flag, flag, named)


def fit(loss, net, batch, rng, steps: int = 60) -> None:
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(batch, rng)[0].backward()
        optimizer.step()


def test_demos_lie_wholly_inside_their_clips(material, skeleton):
    demos = demonstrations(material.library, skeleton, 3, rate=30.0)
    counts = torch.bincount(demos.clip)
    torch.testing.assert_close(counts, material.library.lengths - 2)
    torch.testing.assert_close(demos.weights.sum(), torch.tensor(1.0))


def test_the_discriminator_learns_to_tell_clips_from_noise(material, nets, rng):
    agent = material.demos.sample(512, rng) + 0.5 * torch.randn(512, material.demos.windows.shape[1], generator=rng)
    loss = style_loss(
        nets.discriminator,
        material.demos,
        Replay(1000, agent.shape[1]),
        grad_penalty=5.0,
        logit_reg=0.01,
        replay_share=0.5,
    )
    fit(loss, nets.discriminator, {"window": agent}, rng)
    reward = style_reward(nets.discriminator, 1.0)
    of_agent = reward(rollout(window=agent)).mean()
    of_clips = reward(rollout(window=material.demos.sample(512, rng))).mean()
    assert of_clips > of_agent + 0.3


def test_the_style_reward_is_bounded(nets):
    far = 1e6 * torch.ones(4, len(nets.discriminator.norm.mean))
    assert torch.isfinite(style_reward(nets.discriminator, 2.0)(rollout(window=far))).all()


def test_the_encoder_learns_to_read_z_back(material, nets, rng):
    windows, z = material.demos.sample(64, rng), sphere(64, 8, rng)
    before = skill_reward(nets.encoder)(rollout(window=windows, z=z)).mean()
    fit(encoder_loss(nets.encoder), nets.encoder, {"window": windows, "z": z}, rng, 200)
    after = skill_reward(nets.encoder)(rollout(window=windows, z=z)).mean()
    assert after > before + 0.3


def test_a_warm_encoder_keeps_clips_together_and_apart(material, nets, rng):
    warm_encoder(nets.encoder, material.demos, 150, 1e-3, rng)
    centres = clip_latents(nets.encoder, material.demos)
    with torch.no_grad():
        nearest = (nets.encoder(material.demos.windows) @ centres.T).argmax(-1)
    assert (nearest == material.demos.clip).float().mean() > 0.8


def test_diversity_pushes_actions_of_different_skills_apart(nets, rng):
    n = 64
    obs, z = torch.randn(n, 69, generator=rng), sphere(n, 8, rng)
    batch = {"obs": obs, "z": z, "action": torch.zeros(n, 28), "logp": torch.zeros(n), "advantage": torch.zeros(n)}
    surrogate = policy_loss(nets.policy, 0.2, 100.0, 0.0)
    loss = with_diversity(surrogate, nets.policy, weight=1.0, target=1.0)

    def spread() -> float:
        with torch.no_grad():
            same = nets.policy({"obs": obs[:1].expand(n, 69), "z": z})
        return float(same.std(0).mean())

    before = spread()
    fit(loss, nets.policy, batch, rng, 100)
    assert spread() > 2 * before


def test_latents_are_unit_and_lifetimes_in_range(rng):
    torch.testing.assert_close(sphere(100, 16, rng).norm(dim=-1), torch.ones(100))
    lifetimes = LatentSchedule(16, 1, 150, 0.5).lifetimes(5000, rng)
    assert lifetimes.min() == 1
    assert lifetimes.max() == 150


def test_replay_keeps_the_latest_and_survives_a_snapshot(rng):
    replay = Replay(10, 1)
    replay.add(torch.arange(7.0)[:, None])
    replay.add(torch.arange(7.0, 14.0)[:, None])
    assert sorted(replay.rows[:, 0].tolist()) == list(range(4, 14))
    other = Replay(10, 1)
    other.restore(replay.snapshot())
    other.add(torch.tensor([[99.0]]))
    replay.add(torch.tensor([[99.0]]))
    assert torch.equal(other.rows, replay.rows)
