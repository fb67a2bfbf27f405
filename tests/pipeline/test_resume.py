"""Interrupted runs end in the same bits as others."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pretrain.assembly import (
    SkillTraining,
    build_training,
    warm_up,
)
from pretrain.config import PretrainConfig
from pretrain.rl import checkpoint
from pretrain.rl.training import Monitor, train_until
from pretrain.train import train, train_and_refine
from pretrain.training_data import load_training_data
from tests.pipeline.small import PHASE_LOCKED, learned, toy, weights


def test_a_signal_in_the_last_iteration_interrupts(tmp_path):
    cfg = toy("samples=512")
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )

    def interrupt(scalars):
        signal.raise_signal(signal.SIGTERM)
        return {}

    monitor = Monitor("pretrain", {}, checkpoint_interval=1e9)
    assert not train_until(training, 512, tmp_path, replace(monitor, on_iteration=interrupt))
    assert checkpoint.load(tmp_path / "checkpoint.pt")["samples"] == training.samples == 512
    assert train_until(training, 512, tmp_path, monitor)


@pytest.mark.parametrize("getting_up", [False, True])
def test_a_resumed_run_ends_in_the_same_bits(tmp_path, rising, getting_up):
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


def refined(cfg: PretrainConfig, folder: Path) -> SkillTraining:
    """A run of `cfg` in `folder`, from its first sample or from where it was."""
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, training_data)
    if not training.resume(folder, cfg.samples):
        warm_up(cfg, training_data, training)
    assert train_and_refine(cfg, training_data, training, folder)
    return training


def test_run_resumed_after_refinement_is_bit_identical(tmp_path, rising):
    how = (
        f"motions={rising}",
        *PHASE_LOCKED,
        "refine.correct=1024",
        "refine.learn=1024",
        "refine.after=[1024]",
    )
    whole = refined(toy("samples=2048", *how), tmp_path / "whole")
    refined(toy("samples=1536", *how), tmp_path / "parts")
    parts = refined(toy("samples=2048", *how), tmp_path / "parts")
    assert torch.equal(weights(parts), weights(whole))
    (last,) = (tmp_path / "whole").glob("refine/*2048/checkpoint.pt")
    learned = checkpoint.load(last)["policy"]
    assert all(
        torch.equal(x, learned[name]) for name, x in whole.nets.average.module.state_dict().items()
    )
    rows = [json.loads(row) for row in (last.parent / "metrics.jsonl").read_text().splitlines()]
    assert [row["corrections"] > 0 for row in rows] == [False, True, True, True]
    assert ["refine/loss" in row for row in rows] == [False, False, True, True]
    first, second = map(checkpoint.load, sorted((tmp_path / "whole" / "milestones").iterdir()))
    assert (first["samples"], second["samples"]) == (1024 + 2048, 2048 + 2 * 2048)
    assert 0 < first["seconds"] < second["seconds"] == whole.seconds
    assert torch.equal(second["nets"]["average"]["module.body.0.weight"], learned["body.0.weight"])


def test_fewer_samples_than_a_run_has_taken_are_refused(tmp_path):
    refined(toy("samples=2048"), tmp_path)
    with pytest.raises(ValueError, match=r"samples=1024: .* has taken 2,048 samples already"):
        refined(toy("samples=1024"), tmp_path)


def test_refinement_scheduled_past_the_end_runs_at_the_end(tmp_path, rising):
    cfg = toy(
        "samples=1024",
        f"motions={rising}",
        "refine.correct=512",
        "refine.learn=512",
        "refine.after=[4096]",
    )
    refined(cfg, tmp_path)
    assert [place.name for place in (tmp_path / "refine").iterdir()] == ["000000001024"]
