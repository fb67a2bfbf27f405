"""The speed of controller training and of pretraining: their ratio, and errors of arguments."""

from __future__ import annotations

import pytest

from benchmarks import controllers
from hlc.config import CONFIG_MODEL, ControllerPPOConfig
from skills_store.store import Store
from tests.hlc.bodies import publish_skills


@pytest.mark.parametrize(
    ("argument", "message"), [("wat=3", "unknown key wat"), ("skill=none@1", "none")]
)
def test_unknown_arguments_are_refused_by_name(argument, message, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["controllers", f"store={tmp_path}", argument])
    assert controllers.main() == 2
    assert message in capsys.readouterr().err


def test_reported_ratio_matches_the_two_reported_rates(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "SECONDS", 0.0)
    store = Store(tmp_path)
    cfg = CONFIG_MODEL(
        skill=publish_skills(store).version.pinned,
        store=str(tmp_path),
        num_envs=4,
        ppo=ControllerPPOConfig(horizon=4, epochs=1, minibatch=8, hidden=(16,)),
        threads=1,
    )
    measured = controllers.measure(cfg, "toy", 1)
    assert measured["control_steps_per_s"] == pytest.approx(5 * measured["decisions_per_s"], abs=3)
    ratio = measured["control_steps_per_s"] / measured["pretraining_samples_per_s"]
    assert measured["ratio"] == pytest.approx(ratio, abs=0.02 * ratio + 0.01)
