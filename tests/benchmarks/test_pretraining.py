"""Training against the engine alone: its ratio, and the errors of arguments."""

from __future__ import annotations

import pytest

from benchmarks import pretraining
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--rounds=0", "not 1 or more"),
        ("--turns=0", "not 1 or more"),
        ("--rounds=x", "invalid int"),
        ("--against=no-such-revision", "no-such-revision"),
    ],
)
def test_invalid_configuration_is_refused(argument, message, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pretraining", argument])
    with pytest.raises(SystemExit, match="2"):
        pretraining.main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "message"), [("wat=3", "unknown key wat"), ("motions=swimming", "locomotion")]
)
def test_unknown_arguments_are_refused_by_name(argument, message, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pretraining", argument])
    assert pretraining.main() == 2
    assert message in capsys.readouterr().err


def test_reported_ratio_matches_the_two_reported_rates():
    found = pretraining.measure(load_config(PretrainConfig, "pretrain.conf", ["preset=toy"]), 1)
    assert found["engine_steps_per_s"] > 0
    assert 0 < found["engine_cpu_us_per_sample"] < found["cpu_us_per_sample"]
    assert found["ratio"] == pytest.approx(
        found["samples_per_s"] / found["engine_steps_per_s"], abs=2e-3
    )
