"""Training against the engine alone: what is asked for wrongly is one line, no traceback."""

from __future__ import annotations

import pytest

from benchmarks import pretraining
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--rounds=0", "not 1 or more"),
        ("--turns=0", "not 1 or more"),
        ("--rounds=x", "invalid int"),
        ("--against=no-such-revision", "no-such-revision"),
    ],
)
def test_invalid_configuration_is_refused(asked, said, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pretraining", asked])
    with pytest.raises(SystemExit, match="2"):
        pretraining.main()
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"), [("wat=3", "unknown key wat"), ("motions=swimming", "locomotion")]
)
def test_unknown_arguments_are_refused_by_name(asked, said, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pretraining", asked])
    assert pretraining.main() == 2
    assert said in capsys.readouterr().err


def test_reported_ratio_matches_the_two_reported_rates():
    found = pretraining.measure(load_config(PretrainConfig, "pretrain.conf", ["preset=toy"]), 1)
    assert found["engine_steps_per_s"] > 0
    assert 0 < found["engine_cpu_us_per_sample"] < found["cpu_us_per_sample"]
    assert found["ratio"] == pytest.approx(
        found["samples_per_s"] / found["engine_steps_per_s"], abs=2e-3
    )
