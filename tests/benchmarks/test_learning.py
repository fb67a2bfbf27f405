"""Learning curves: medians and ranges over runs, and the errors of unsuitable runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.learning import HEADLINE, MEASURES, Row, draw, in_common, known, main, table
from pretrain.train import main as train


def row(samples: float, survival: float | None) -> Row:
    return {
        "samples": samples,
        "seconds": samples / 10_000,
        **dict.fromkeys(MEASURES, 1.0),
        "survival": survival,
    }


def test_table_row_has_median_and_range_of_runs_with_data() -> None:
    runs = [[row(2e6, 10), row(4e6, 30)], [row(2e6, 50), row(4e6, 20)], [row(2e6, 20)]]
    header, _, *lines = table(runs, MEASURES).splitlines()
    column = header.split(" | ").index("survival")
    assert [line.split(" | ")[column] for line in lines] == [
        "20 (10 to 50)"
    ]  # the third run has no second milestone


def test_runs_are_compared_at_equal_sample_counts() -> None:
    often = [row(1e6, 1), row(2e6, 2), row(4e6, 4)]
    seldom = [row(2e6, 20), row(4e6, 40)]
    assert [[r["survival"] for r in rows] for rows in in_common([often, seldom])] == [
        [2, 20],
        [4, 40],
    ]


def test_a_measure_that_no_run_has_is_a_dash() -> None:
    header, _, line = table([[row(2e6, None)]], MEASURES).splitlines()
    assert line.split(" | ")[header.split(" | ").index("survival")] == "-"


def test_missing_measures_are_skipped_and_zero_is_kept(tmp_path: Path) -> None:
    rows = [row(2e6, None), row(4e6, 0.0)]
    assert known(rows, "survival") == [0.0]
    draw([rows, rows[:1]], MEASURES, tmp_path / "learning.png")  # a warning would fail
    assert (tmp_path / "learning.png").stat().st_size > 0


def test_the_quick_card_of_a_runs_milestones(tmp_path, capsys):
    training = ["preset=toy", "publish=false", f"runs={tmp_path / 'runs'}", "samples=512"]
    assert train(training) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert main([str(folder), f"out={tmp_path}", "quick=true"]) == 0
    header, _, line = capsys.readouterr().out.splitlines()[-3:]
    assert header == f"| samples | seconds | {' | '.join(HEADLINE)} |"
    assert line.startswith("| 0.0 M |")
    assert (tmp_path / "learning.png").stat().st_size > 0


def test_folder_without_a_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert "name the folders of one or more runs" in capsys.readouterr().err


def test_a_run_whose_configuration_was_changed_is_refused(tmp_path, capsys):
    folder = tmp_path / "humanoid-0123abcd"
    (folder / "milestones").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert main([str(folder)]) == 2
    assert "changed since the run" in capsys.readouterr().err


def test_run_of_another_version_is_refused(tmp_path, capsys):
    (tmp_path / "milestones").mkdir()
    (tmp_path / "config.json").write_text('{"disc": {"strict_from": 7}}')
    assert main([str(tmp_path)]) == 2
    assert "disc.strict_from: measure it with that version" in capsys.readouterr().err
