"""Resumed runs end bit-identical to uninterrupted ones."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pretrain.assembly import build_training, warm_up
from pretrain.config import PretrainConfig
from pretrain.publishing.publish import TrainedSkills
from pretrain.rl import checkpoint
from pretrain.rl.training import Monitor, train_until
from pretrain.train import train, train_skills
from pretrain.training_data import load_training_data
from tests.pipeline.small import PHASE_LOCKED, learned, toy, weights


def test_a_signal_in_the_last_iteration_interrupts(tmp_path):
    cfg = toy("samples=512")
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )

    def interrupt():
        signal.raise_signal(signal.SIGTERM)
        return {}

    monitor = Monitor("pretrain", {}, checkpoint_interval=1e9)
    assert not train_until(training, 512, tmp_path, replace(monitor, on_iteration=interrupt))
    assert checkpoint.load(tmp_path / "checkpoint.pt")["samples"] == training.samples == 512
    assert train_until(training, 512, tmp_path, monitor)


@pytest.mark.parametrize("getting_up", [False, True])
def test_resumed_run_ends_bit_identical(tmp_path, rising, getting_up):
    cfg = toy("samples=4096", *((f"motions={rising}", *PHASE_LOCKED) if getting_up else ()))
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    whole = build_training(cfg, training_data)
    warm_up(cfg, training_data, whole)
    assert train(cfg, whole, tmp_path / "whole")
    half = build_training(cfg, training_data)
    warm_up(cfg, training_data, half)
    assert train(cfg.model_copy(update={"samples": 2048}), half, tmp_path / "parts")
    resumed = build_training(cfg, training_data)
    resumed.restore(checkpoint.load(tmp_path / "parts" / "checkpoint.pt"))
    assert train(cfg, resumed, tmp_path / "parts")
    assert torch.equal(weights(resumed), weights(whole))
    parts, all_at_once = (learned(tmp_path / name) for name in ("parts", "whole"))
    assert [row["iteration"] for row in parts] == list(range(1, 9))
    assert parts == all_at_once


def trained(cfg: PretrainConfig, folder: Path) -> TrainedSkills | None:
    """A run of `cfg` in `folder`, from its first sample or from where it was."""
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    return train_skills(cfg, data, folder)


def test_the_end_of_a_run_is_a_milestone(tmp_path):
    trained(toy("samples=1024"), tmp_path)
    trained(toy("samples=2048"), tmp_path)
    first, second = map(checkpoint.load, sorted((tmp_path / "milestones").iterdir()))
    assert (first["samples"], second["samples"]) == (1024, 2048)
    assert 0 < first["seconds"] < second["seconds"]


def test_fewer_samples_than_a_run_has_taken_are_refused(tmp_path):
    trained(toy("samples=2048"), tmp_path)
    with pytest.raises(ValueError, match=r"samples=1024: .* has taken 2,048 samples already"):
        trained(toy("samples=1024"), tmp_path)
