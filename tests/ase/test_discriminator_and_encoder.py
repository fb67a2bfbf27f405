"""Losses and rewards of discriminator and encoder, on data with a known result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import pytest
import torch

from pretrain.ase.discriminator import (
    MAX_REWARD,
    Discriminator,
    disc_loss,
    make_replay,
    style_reward,
)
from pretrain.ase.encoder import (
    embed_clips,
    encoder_loss,
    fit_encoder,
    measure_uniformity,
    skill_reward,
    warm_encoder,
    with_diversity_loss,
)
from pretrain.ase.latents import sample_on_sphere
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.reference_windows import make_reference_windows
from pretrain.ase.symmetry import Symmetry
from pretrain.ase_config import DiscConfig
from pretrain.rl.adam import Adam
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.ppo import clipped_surrogate
from pretrain.rl.rollout import Rollout

SIZES = Sizes(
    latent_dim=8,
    policy=(32,),
    value=(32,),
    disc=(64,),
    enc=(64,),
    action_std=0.1,
    average_decay=0.9,
)


@pytest.fixture
def nets(training_data, rng):
    return make_nets(
        SIZES, training_data.library, training_data.demos, 28, symmetry=Symmetry(), rng=rng
    )


def rollout(**extras: torch.Tensor) -> Rollout:
    n = len(next(iter(extras.values())))
    zero = torch.zeros(1, n)
    flag = torch.zeros(1, n, dtype=torch.bool)
    named = {name: x[None] for name, x in extras.items()}
    return Rollout({"z": named.pop("z", zero)}, {}, zero, zero, zero, zero, flag, flag, flag, named)


def fit(loss, net, batch, rng, steps: int = 60) -> None:
    optimizer = Adam(net.parameters(), 1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(batch, rng)[0].backward()
        optimizer.step()


def test_demo_windows_never_cross_clip_boundaries(training_data, skeleton):
    demos = make_reference_windows(training_data.library, skeleton, 3, rate=30.0)
    counts = torch.bincount(demos.clip)
    torch.testing.assert_close(counts, training_data.library.lengths - 2)
    torch.testing.assert_close(demos.counts, counts)


def drawn(training_data, n: int, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows of random clips, and which clips."""
    clips = torch.randint(len(training_data.library.names), (n,), generator=rng)
    return training_data.demos.sample(clips, rng), clips


def test_samples_are_of_the_given_clips(training_data, rng):
    windows, clips = drawn(training_data, 50, rng)
    for window, clip in zip(windows, clips, strict=True):
        assert (
            (training_data.demos.windows[training_data.demos.clip == clip] == window).all(-1).any()
        )


def style(training_data, nets, grad_penalty: float = 5.0):
    """The style loss of `nets`, with an empty replay."""
    disc = DiscConfig(disc_grad_penalty=grad_penalty, disc_weight_decay=1e-4)
    replay = make_replay(1000, training_data.demos)
    return disc_loss(nets.discriminator, training_data.demos, replay, disc)


def test_the_discriminator_learns_to_tell_clips_from_noise(training_data, nets, rng):
    agent, clips = drawn(training_data, 512, rng)
    agent = agent + 0.5 * torch.randn(agent.shape, generator=rng)
    fit(style(training_data, nets), nets.discriminator, {"window": agent, "z_clip": clips}, rng)
    reward = style_reward(nets.discriminator, 1.0)
    windows, own = drawn(training_data, 512, rng)
    assert (
        reward(rollout(window=windows, z_clip=own)).mean()
        > reward(rollout(window=agent, z_clip=clips)).mean() + 0.3
    )


def test_the_discriminator_learns_to_tell_a_clip_from_another(training_data, nets, rng):
    windows, clips = drawn(training_data, 512, rng)
    # windows of one clip under the condition of another
    other = (clips + 2) % len(training_data.library.names)
    fit(
        style(training_data, nets),
        nets.discriminator,
        {"window": windows, "z_clip": other},
        rng,
        150,
    )
    reward = style_reward(nets.discriminator, 1.0)
    wrong, right = (
        reward(rollout(window=windows, z_clip=given)).mean() for given in (other, clips)
    )
    assert right > wrong + 0.2
    best = nets.discriminator.best_logit(windows)
    assert (best >= nets.discriminator(windows, clips) - 1e-6).all()
    assert best.shape == (512,)


def test_discriminator_normalizes_windows_per_clip(training_data, nets):
    demos = training_data.demos
    disc = nets.discriminator
    seen = disc.norm(demos.windows, demos.clip)
    means = torch.stack([part.mean(0) for part in seen.split(demos.counts.tolist())])
    assert means.abs().max() < 0.2  # except for clipping, each clip is centered
    walk, run = (training_data.library.names.index(name) for name in ("walk", "run"))
    as_run = disc.norm(
        demos.windows[demos.clip == walk], torch.full((int(demos.counts[walk]),), run)
    )
    assert as_run.abs().mean() > 2 * seen[demos.clip == walk].abs().mean()
    assert as_run.abs().max() <= disc.BOUND


def test_gradient_penalty_enters_the_loss_with_its_weight(training_data, nets):
    windows, clips = drawn(training_data, 64, torch.Generator().manual_seed(1))
    batch = {"window": windows, "z_clip": clips}
    (with_it, metrics), (without, _) = (
        style(training_data, nets, weight)(batch, torch.Generator().manual_seed(2))
        for weight in (2.0, 0.0)
    )
    torch.testing.assert_close(with_it - without, 2.0 * metrics["disc_grad_penalty"])


@pytest.mark.parametrize(
    ("logit", "expected"), [(-1e3, 0.0), (0.0, math.log(2)), (1e3, MAX_REWARD)]
)
def test_the_style_reward_is_bounded(logit, expected):
    def discriminator(window: torch.Tensor, clip: torch.Tensor) -> torch.Tensor:
        return torch.full(clip.shape, logit)

    reward = style_reward(cast(Discriminator, discriminator), 2.0)(
        rollout(window=torch.zeros(4, 3), z_clip=torch.arange(4))
    )
    torch.testing.assert_close(reward, torch.full((1, 4), 2.0 * expected))


def test_encoder_learns_to_predict_z(training_data, nets, rng):
    windows = drawn(training_data, 64, rng)[0]
    z = sample_on_sphere(64, 8, rng)
    before = skill_reward(nets.encoder, -1.0)(rollout(window=windows, z=z)).mean()
    fit(
        encoder_loss(nets.encoder, training_data.demos, weight=1.0, anchor_weight=1.0),
        nets.encoder,
        {"window": windows, "z": z},
        rng,
        200,
    )
    after = skill_reward(nets.encoder, -1.0)(rollout(window=windows, z=z)).mean()
    assert after > before + 0.3


def test_a_warm_encoder_keeps_clips_together_and_apart(training_data, nets, rng):
    warm_encoder(nets.encoder, training_data.demos, 150, 1e-3, rng)
    centers = embed_clips(nets.encoder, training_data.demos)
    assert torch.equal(centers, nets.encoder.clip_latents)
    with torch.no_grad():
        nearest = (nets.encoder(training_data.demos.windows) @ centers.T).argmax(-1)
    assert (nearest == training_data.demos.clip).float().mean() > 0.8


def test_an_encoder_is_fitted_to_given_latents(training_data, nets, rng):
    originals = torch.tensor(training_data.library.originals)
    given = sample_on_sphere(len(originals), 8, rng)[originals]  # a walk is its own mirror image
    nets.encoder.clip_latents.copy_(given)
    fit_encoder(nets.encoder, training_data.demos, GradientSteps(300, 1e-3, 256), rng)
    assert torch.equal(nets.encoder.clip_latents, given)
    assert (embed_clips(nets.encoder, training_data.demos) * given).sum(-1).min() > 0.9


def test_clip_latents_stay_fixed_while_the_encoder_trains(training_data, nets, rng):
    warm_encoder(nets.encoder, training_data.demos, 100, 1e-3, rng)
    placed = nets.encoder.clip_latents.clone()
    windows = drawn(training_data, 256, rng)[0]
    one = sample_on_sphere(1, 8, rng).expand(256, -1)  # one z for all windows
    fit(
        encoder_loss(nets.encoder, training_data.demos, weight=1.0, anchor_weight=1.0),
        nets.encoder,
        {"window": 3 * windows, "z": one},
        rng,
        150,
    )
    assert torch.equal(nets.encoder.clip_latents, placed)
    assert (embed_clips(nets.encoder, training_data.demos) * placed).sum(-1).min() > 0.9


def test_diversity_pushes_actions_of_different_skills_apart(nets, rng):
    n = 64
    obs = torch.randn(n, 69, generator=rng)
    z = sample_on_sphere(n, 8, rng)
    batch = {
        "obs": obs,
        "z": z,
        "action": torch.zeros(n, 28),
        "logp": torch.zeros(n),
        "advantage": torch.zeros(n),
    }
    surrogate = clipped_surrogate(nets.policy, 0.2, 100.0, 0.0)
    loss = with_diversity_loss(nets.policy, surrogate, weight=1.0, target=1.0, share=0.125)

    def spread() -> float:
        with torch.no_grad():
            same = nets.policy({"obs": obs[:1].expand(n, 69), "z": z})
        return float(same.std(0).mean())

    before = spread()
    fit(loss, nets.policy, batch, rng, 100)
    assert spread() > 2 * before


def test_without_a_condition_the_clip_changes_no_logit(training_data, skeleton, rng):
    sizes = replace(SIZES, conditional=False)
    plain = make_nets(
        sizes,
        training_data.library,
        training_data.demos,
        skeleton.num_hinges,
        symmetry=Symmetry(),
        rng=rng,
    )
    windows, clips = drawn(training_data, 64, rng)
    logits = plain.discriminator(windows, clips)
    torch.testing.assert_close(plain.discriminator(windows, clips.roll(1)), logits)
    torch.testing.assert_close(plain.discriminator.best_logit(windows), logits)
    agent = windows + 0.5 * torch.randn(windows.shape, generator=rng)
    fit(style(training_data, plain), plain.discriminator, {"window": agent, "z_clip": clips}, rng)
    real = plain.discriminator(
        drawn(training_data, 512, rng)[0], torch.zeros(512, dtype=torch.long)
    )
    assert real.mean() > plain.discriminator(agent, clips).mean() + 1


def test_the_skill_reward_of_ase_is_never_negative(training_data, nets, rng):
    windows = drawn(training_data, 64, rng)[0]
    z = sample_on_sphere(64, 8, rng)
    free = skill_reward(nets.encoder, -1.0)(rollout(window=windows, z=z))
    clamped = skill_reward(nets.encoder, 0.0)(rollout(window=windows, z=z))
    assert (free < 0).any()
    torch.testing.assert_close(clamped, free.clamp_min(0))


def test_encoder_loss_without_anchors_is_the_agreement_only(training_data, nets, rng):
    batch = {"window": drawn(training_data, 64, rng)[0], "z": sample_on_sphere(64, 8, rng)}
    loss, metrics = encoder_loss(nets.encoder, training_data.demos, weight=5.0, anchor_weight=0.0)(
        batch, rng
    )
    assert set(metrics) == {"enc_agreement"}
    torch.testing.assert_close(loss, -5 * metrics["enc_agreement"])


def test_uniformity_is_zero_for_equal_codes_and_lowest_when_spread(rng):
    same = sample_on_sphere(1, 8, rng).expand(64, 8)
    half = sample_on_sphere(64, 8, rng).abs()
    spread = sample_on_sphere(64, 8, rng)
    assert measure_uniformity(same).abs() < 1e-6
    assert measure_uniformity(spread) < measure_uniformity(half) < 0
    # two opposite points: the mean of exp(0) and exp(-4)
    pair = torch.stack([spread[0], -spread[0]])
    expected = torch.tensor((1 + math.exp(-4)) / 2).log()
    torch.testing.assert_close(measure_uniformity(pair), expected)


def test_uniformity_weight_spreads_the_codes(training_data, nets, rng):
    windows = drawn(training_data, 256, rng)[0]
    batch = {"window": windows, "z": sample_on_sphere(1, 8, rng).expand(256, 8)}
    before = measure_uniformity(nets.encoder(windows))
    loss = encoder_loss(
        nets.encoder, training_data.demos, weight=1.0, anchor_weight=0.0, uniformity_weight=10.0
    )
    fit(loss, nets.encoder, batch, rng, 50)
    assert measure_uniformity(nets.encoder(windows)) < before
