"""Robustness of a limp body and of clip playback, and the latency of one step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pretrain.evaluation.robustness import BODIES, PUSHES, DelayedPolicy, robustness
from tests.evaluation import playback


def test_clip_playback_survives_every_disturbance(monkeypatch):
    data = playback.training_data()
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data, episodes=16)
    found = robustness(setup, torch.Generator().manual_seed(0))
    assert set(found) == {
        *BODIES,
        "latency_1_step",
        *(f"push_{newtons}_newton" for newtons in PUSHES),
        "gets_up",
    }
    rated = {name: share for name, share in found.items() if name != "gets_up"}
    assert {share["mean"] for share in rated.values()} == {1.0}
    assert {share["n"] for share in rated.values()} == {16}


def test_falls_with_recovery_are_not_survived(monkeypatch):
    data = playback.training_data()
    playback.playback(monkeypatch, data, falls=True)
    setup = playback.setup_of(playback.conditioned(data), data, episodes=16)
    found = robustness(setup, torch.Generator().manual_seed(0))
    assert found["undisturbed"]["mean"] == pytest.approx(44 / 150)  # it falls in the 45th step
    assert found["push_100_newton"]["mean"] == 0


def limp(state: np.ndarray, z: np.ndarray) -> np.ndarray:
    return state[:, 13:41]


def test_a_limp_body_falls_and_never_gets_up(training_data):
    skills = playback.library_of(training_data, limp)
    names = training_data.library.names
    clips = {name: [1.0] + [0.0] * (playback.LATENT_DIM - 1) for name in names}
    skills.version.manifest.latent.clips = clips
    setup = playback.setup_of(skills, training_data, engine="mujoco", episodes=16)
    found = robustness(setup, torch.Generator().manual_seed(0))
    assert found["undisturbed"]["mean"] < 0.7
    assert found["push_500_newton"]["mean"] in (None, 0.0)
    assert found["gets_up"]["mean"] == 0
    assert found["gets_up"]["n"] > 8


def test_a_library_without_upright_clips_is_not_pushed(monkeypatch):
    data = playback.training_data(playback.CLIPS[-1:])
    playback.playback(monkeypatch, data)
    setup = playback.setup_of(playback.conditioned(data), data)
    found = robustness(setup, torch.Generator().manual_seed(0))
    assert {share["mean"] for share in found.values()} == {None}


def test_delayed_policy_holds_the_pose_then_lags_one_step():
    steps = iter(range(3))

    def act(state: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.full((1, 28), float(next(steps)))

    delayed = DelayedPolicy(act, 28)
    state = np.full((1, 69), 7.0)
    seen = [float(delayed(state, np.zeros((1, 4)))[0, 0]) for _ in range(3)]
    assert seen == [7.0, 0.0, 1.0]
