"""Distinguishable skills, of features and libraries where their number is known."""

from __future__ import annotations

import math

import pytest
import torch

from pretrain.evaluation.discriminant import distinguishable_skills, leave_one_out
from pretrain.evaluation.held_skills import own_and_random_skills
from tests.evaluation import playback

SKILLS = 16
REPEATS = 8


def information(features: torch.Tensor) -> float:
    return math.log(len(features)) + float(leave_one_out(features).mean())


def test_information_of_uninformative_features_is_near_zero(rng):
    assert information(torch.randn(SKILLS, REPEATS, 30, generator=rng)) < 0.1


def test_information_of_separated_skills_is_log_of_their_count(rng):
    centers = 20 * torch.randn(SKILLS, 1, 30, generator=rng)
    features = centers + torch.randn(SKILLS, REPEATS, 30, generator=rng)
    assert information(features) == pytest.approx(math.log(SKILLS), abs=0.01)


def test_pairs_that_are_alike_count_as_one(rng):
    centers = 20 * torch.randn(SKILLS // 2, 1, 30, generator=rng).repeat_interleave(2, 0)
    features = centers + torch.randn(SKILLS, 60, 30, generator=rng)
    assert information(features) == pytest.approx(math.log(SKILLS / 2), abs=0.1)


def test_information_of_two_overlapping_gaussians_matches_theory(rng):
    """Of two skills 2 stds apart, 0.337 nats; with few examples the bound is lower."""
    centers = torch.tensor([0.0, 2.0])[:, None, None]
    features = centers + torch.randn(2, 2000, 1, generator=rng)
    assert information(features) == pytest.approx(0.337, abs=0.04)


@pytest.mark.parametrize("seed", range(3))
def test_a_policy_that_ignores_z_has_one_skill(monkeypatch, seed):
    data = playback.training_data()
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.unconditioned(data, "walk"), data, seconds=4.0)
    _, held = own_and_random_skills(setup, SKILLS, REPEATS, torch.Generator().manual_seed(seed))
    found = distinguishable_skills(setup, held)
    assert found["mean"] == pytest.approx(1, abs=0.2)
    assert found["n"] == SKILLS


def test_a_library_that_plays_clips_has_no_more_skills_than_clips(monkeypatch):
    """And nearly as many: with few examples the bound is lower."""
    data = playback.training_data()
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data, seconds=4.0)
    _, held = own_and_random_skills(setup, 40, 2 * REPEATS, torch.Generator().manual_seed(0))
    found = distinguishable_skills(setup, held)
    assert 3 < found["mean"] < len(data.library.names)
