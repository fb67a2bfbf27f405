"""The ablation: its variants, its bars and its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ablation
from benchmarks.ablation import (
    FULL,
    MECHANISMS,
    Bars,
    has_mechanism,
    main,
    parse_plan,
    samples_to,
    write_table,
)
from benchmarks.learning import HEADLINE, Row
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config

BARS = Bars(time_on_clip=0.5, falls_own=1.0)


def row(samples: float, time_on_clip: float, falls_own: float | None = 0.0) -> Row:
    rest = dict.fromkeys(HEADLINE, 0.0)
    return {"samples": samples, **rest, "time_on_clip": time_on_clip, "falls_own": falls_own}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_preset_has_every_mechanism(mechanism: str) -> None:
    assert has_mechanism(parse_plan(["preset=switching"]), mechanism)


def test_switching_needs_the_library_that_it_continues(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preset=switching"]) == 2
    assert "expected warm.library=NAME@N" in capsys.readouterr().err
    for variant in (FULL, *MECHANISMS):
        plan = parse_plan(["preset=switching", "warm.library=mobility@8"])
        warm = load_config(PretrainConfig, "pretrain.conf", plan.overrides(variant, 0)).warm
        assert warm.library == ("" if variant == "warm_start" else "mobility@8")
        assert warm.library or not warm.distill_steps


FOR_SWITCHES = ["latent_distillation", "switch_assist"]


@pytest.mark.parametrize("preset", ["mobility", "locomotion"])
def test_a_preset_lacks_only_the_mechanisms_for_switches(preset: str) -> None:
    plan = parse_plan([f"preset={preset}"])
    assert [name for name in MECHANISMS if not has_mechanism(plan, name)] == FOR_SWITCHES


def test_plain_ase_has_no_mechanism_beyond_it() -> None:
    plan = parse_plan(["preset=ase"])
    assert [name for name in MECHANISMS if has_mechanism(plan, name)] == []


def test_samples_to_is_the_first_milestone_meeting_all_bars() -> None:
    rows = [row(1e6, 0.2), row(2e6, 0.9, 3.0), row(3e6, 0.6, 1.0), row(4e6, 0.9)]
    assert samples_to(rows, BARS) == 3e6
    assert samples_to(rows[:2], BARS) is None
    assert samples_to([row(1e6, 0.5, None)], BARS) == 1e6  # no clip of it is upright


def test_a_line_counts_the_runs_that_met_the_bars() -> None:
    runs = {
        FULL: [[row(1e6, 0.6)], [row(1e6, 0.1), row(2e6, 0.7)]],
        "anchor": [[row(1e6, 0.1)], [row(1e6, 0.3)]],
    }
    _, _, full, anchor = write_table(runs, BARS).splitlines()
    assert full.startswith("| - | 2 of 2 | 1.5 (1 to 2) |")
    assert " | 0.65 (0.6 to 0.7) | " in full
    assert anchor.startswith("| anchor | 0 of 2 | - |")
    assert " | 0.2 (0.1 to 0.3) | " in anchor


def test_failed_run_counts_as_one_below_the_bars() -> None:
    line = write_table({"anchor": [[], [row(1e6, 0.6)]]}, BARS).splitlines()[-1]
    assert line.startswith("| anchor | 1 of 2 | 1 (1 to 1) |")
    assert " | 0.6 (0.6 to 0.6) | " in line


@pytest.mark.parametrize(("rows", "status"), [([row(1e4, 0.6)], 0), ([], 1)])
def test_exit_status_is_1_after_a_failed_run(
    rows: list[Row], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "run_variant", lambda plan, variant, seed: rows)
    assert main(["only=anchor", "seeds=1", f"out={tmp_path}"]) == status
    assert (tmp_path / "ablation.md").read_text().count("\n") == 4


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("only=anchr", "only=anchr: no such mechanism; there are warm_start, "),
        ("time_on_clip=2", "time_on_clip=2 is not a number from 0 to 1"),
        ("falls_own=few", "falls_own=few is not a number from 0 to 60"),
        ("seeds=0", "seeds=0 is not a whole number"),
        ("preset=nosuch", "In 'config': Could not find 'preset/nosuch'"),
    ],
)
def test_invalid_ablation_plan_arguments_are_refused(
    argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument]) == 2
    assert capsys.readouterr().err.startswith(message)
