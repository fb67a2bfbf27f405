"""The profile of a training: all parts are measured, and patched functions restored."""

from __future__ import annotations

import json

from benchmarks.training_profile import PARTS, profile_training
from pretrain.assembly import build_training
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config
from pretrain.training_data import load_training_data


def test_parts_of_a_training_are_measured_and_traced(tmp_path):
    cfg = load_config(PretrainConfig, "pretrain.conf", ["preset=toy", "num_envs=8"])
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    before = [getattr(owner, name) for each in PARTS.values() for owner, name in each]
    trace = tmp_path / "trace.json"
    found = profile_training(build_training(cfg, data), 2, trace)
    parts = {part for _, part in found}
    learners = {"fit policy", "fit value", "fit disc", "fit enc"}
    assert {
        "simulate",
        "style features",
        "policy",
        "reset",
        "value and rewards",
    } | learners <= parts
    assert all(us >= 0 for us in found.values())
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"simulate", "fit value"} <= names
    after = [getattr(owner, name) for each in PARTS.values() for owner, name in each]
    assert after == before
