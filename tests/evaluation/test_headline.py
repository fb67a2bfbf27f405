"""Falls, time on clip and switch success of libraries of known performance."""

from __future__ import annotations

import pytest
import torch

from pretrain.evaluation.episodes import random_skill_episodes
from pretrain.evaluation.headline import headline
from pretrain.evaluation.held_skills import (
    falls_per_minute,
    own_skills,
    pose_error,
    time_on_clip,
)
from pretrain.evaluation.switching import switch_rollouts
from tests.evaluation import playback

CLIPS = len(playback.CLIPS)


@pytest.fixture(scope="module")
def data():
    return playback.training_data()


def measure(setup):
    rng = torch.Generator().manual_seed(0)
    own = own_skills(setup, rng)
    switches = switch_rollouts(setup, rng) if len(setup.targets) > 1 else None
    return headline(setup, own, switches, random_skill_episodes(setup, rng))


def test_playing_the_clips_is_perfect(data, monkeypatch):
    playback.playback(monkeypatch, data)
    card, detail = measure(playback.setup_of(playback.conditioned(data), data))
    assert card["falls_per_minute"]["own"] == 0
    assert card["falls_per_minute"]["random"] == 0
    assert card["time_on_clip"]["least"] == 1
    assert card["switch_success"]["mean"] == 1
    assert detail["switch_success"]["n"] == CLIPS * (CLIPS - 1) * 2


def test_fall_rate_without_falls_has_a_poisson_upper_bound(data, monkeypatch):
    playback.playback(monkeypatch, data)
    _, detail = measure(playback.setup_of(playback.conditioned(data), data))
    low, high = detail["falls_per_minute"]["own"]["interval"]
    assert low == 0
    minutes = (CLIPS - 1) * 4 / 6  # four worlds a clip, 10 s each; lying is not upright
    assert high == pytest.approx(3.689 / minutes, rel=1e-3)  # Garwood's 95 % of no event


def test_a_policy_that_ignores_z_switches_to_one_clip_alone(data, monkeypatch):
    playback.playback(monkeypatch, data)
    card, _ = measure(playback.setup_of(playback.unconditioned(data, "walk"), data))
    assert card["switch_success"]["mean"] == pytest.approx(1 / CLIPS)
    assert card["time_on_clip"]["per_clip"]["walk"] == 1
    assert card["time_on_clip"]["least"] < 0.05
    assert {row.get("walk", 1.0) for row in card["switch_success"]["matrix"].values()} == {1.0}


def test_falls_with_recovery_are_counted(data, monkeypatch):
    """It lies from second 1.5 of each two seconds: five times in ten seconds."""
    playback.playback(monkeypatch, data, falls=True)
    card, _ = measure(playback.setup_of(playback.conditioned(data), data))
    assert card["falls_per_minute"]["own"] == pytest.approx(30)
    # a z whose nearest clip lies may be on the ground
    assert 15 < card["falls_per_minute"]["random"] < 30
    assert card["switch_success"]["mean"] < 0.3


def test_lying_under_a_lying_clip_is_no_fall(data, monkeypatch):
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    own = own_skills(setup, torch.Generator().manual_seed(0))
    lie = data.library.names.index("lie")
    assert own.recording.falls.falls[own.worlds(lie)].sum() == 0
    assert not setup.ground.upright[lie]
    assert "lie" not in falls_per_minute(setup, own)[1]


def test_pose_error_is_0_for_playback_and_large_for_another_clip(data, monkeypatch):
    playback.playback(monkeypatch, data)
    rng = torch.Generator().manual_seed(0)
    for skills, clip, low, high in (
        (playback.conditioned(data), "walk", 0.0, 1e-6),
        (playback.unconditioned(data, "walk"), "lie", 0.05, 1.0),
    ):
        setup = playback.setup_of(skills, data)
        error = float(pose_error(setup, own_skills(setup, rng))[clip].mean())
        assert low <= error <= high


def test_time_on_clip_tolerates_small_and_rejects_large_offset(data, monkeypatch):
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    own = own_skills(setup, torch.Generator().manual_seed(0))
    for off, expected in ((0.02, 1.0), (2.0, 0.0)):
        own.recording.frames[:, own.worlds(0), 0] += off  # the root's height
        assert float(time_on_clip(setup, own)["stand"].mean()) == expected


def test_frozen_pose_is_on_no_moving_clip(data, monkeypatch):
    """Its poses are the clips', and its velocity is 0."""
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    own = own_skills(setup, torch.Generator().manual_seed(0))
    own.recording.velocity.zero_()
    shares = {clip: float(share.mean()) for clip, share in time_on_clip(setup, own).items()}
    assert shares == {"stand": 1.0, "walk": 0.0, "sidestep": 0.0, "turn": 0.0, "lie": 1.0}


def test_gliding_without_limb_motion_is_not_on_a_walk(data, monkeypatch):
    """One frame of each clip, moving at the clip's velocity."""
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    own = own_skills(setup, torch.Generator().manual_seed(0))
    own.recording.frames[:] = own.recording.frames[:1].clone()
    shares = {clip: float(share.mean()) for clip, share in time_on_clip(setup, own).items()}
    assert (shares["stand"], shares["walk"], shares["lie"]) == (1.0, 0.0, 1.0)


def test_switch_success_is_null_for_a_single_clip(monkeypatch):
    data = playback.training_data(playback.CLIPS[1:2])
    playback.playback(monkeypatch, data)
    card, detail = measure(playback.setup_of(playback.conditioned(data), data))
    assert card["switch_success"] == {"mean": None, "matrix": {}}
    assert detail["switch_success"]["n"] == 0
    assert card["time_on_clip"]["mean"] == 1
