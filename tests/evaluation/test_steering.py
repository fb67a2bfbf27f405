"""Steering, of clips whose speeds are known."""

from __future__ import annotations

import pytest
import torch

from pretrain.evaluation.held_skills import own_and_random_skills
from pretrain.evaluation.steering import AXES, SMOOTHING, response_times, steering
from pretrain.evaluation.switching import switch_rollouts
from tests.evaluation import playback


@pytest.fixture(scope="module")
def data():
    return playback.training_data()


def measure(skills, data):
    setup = playback.setup_of(skills, data)
    rng = torch.Generator().manual_seed(0)
    own, drawn = own_and_random_skills(setup, 4, 2, rng)
    switches = switch_rollouts(setup, rng)
    times = response_times(setup, own, switches)
    return *steering(setup, own, drawn, switches), switches, times


def test_speed_and_turn_ranges_match_the_clips(data, monkeypatch):
    playback.playback(monkeypatch, data)
    card, detail, _, _ = measure(playback.conditioned(data), data)
    assert card["forward_speed"] == pytest.approx([0, playback.SPEED], abs=0.02)
    assert card["lateral_speed"] == pytest.approx([0, playback.SIDE_SPEED], abs=0.02)
    assert card["turn_rate"] == pytest.approx([0, playback.TURN_RATE], abs=0.02)
    assert card["stands"]
    assert detail["forward_speed"]["most"]["n"] in (2, 4)


def test_a_change_without_delay_takes_no_longer_than_the_average(data, monkeypatch):
    playback.playback(monkeypatch, data)
    card, _, switches, times = measure(playback.conditioned(data), data)
    assert card["reach_90_percent"] == 1.0
    assert card["seconds_to_90_percent"] == pytest.approx(SMOOTHING / 30, abs=0.01)
    stand = data.library.names.index("stand")
    lie = data.library.names.index("lie")
    still = (switches.start == lie) & (switches.target == stand)
    assert times[still].isnan().all()  # neither moves: there is no change of velocity


def test_lying_worlds_do_not_reach_a_velocity_change(data, monkeypatch):
    playback.playback(monkeypatch, data)
    _, _, switches, times = measure(playback.conditioned(data), data)
    setup = playback.setup_of(playback.conditioned(data), data)
    own, _ = own_and_random_skills(setup, 4, 2, torch.Generator().manual_seed(0))
    switches.recording.down[:] = True
    fallen = response_times(setup, own, switches)
    assert torch.isfinite(times[~times.isnan()]).all()
    assert fallen[~fallen.isnan()].isinf().all()


def test_library_of_a_lying_clip_does_not_stand(data, monkeypatch):
    lying = playback.training_data(tuple(clip for clip in playback.CLIPS if clip.name == "lie"))
    playback.playback(monkeypatch, lying)
    card, _, _, _ = measure(playback.conditioned(lying), lying)
    assert not card["stands"]


def test_policy_that_only_walks_has_a_single_speed_and_no_stand(data, monkeypatch):
    playback.playback(monkeypatch, data)
    card, _, _, times = measure(playback.unconditioned(data, "walk"), data)
    assert not card["stands"]
    assert card["forward_speed"] == pytest.approx([playback.SPEED] * 2, abs=0.02)
    assert torch.isfinite(times[~times.isnan()]).all()  # it walks at once under any z


def test_a_library_that_falls_every_two_seconds_has_no_ranges(monkeypatch):
    upright = playback.training_data(tuple(clip for clip in playback.CLIPS if clip.name != "lie"))
    playback.playback(monkeypatch, upright, falls=True)
    card, _, _, _ = measure(playback.unconditioned(upright, "walk"), upright)
    assert not card["stands"]
    assert [card[axis] for axis in AXES] == [None, None, None]
