"""Trainings of a benchmark: run once, measured up to their samples, stopped with the benchmark."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import finished_run
from benchmarks.finished_run import STOPPED, cut_rows, train_and_measure
from benchmarks.learning import Row, whole_card

TOY = ["preset=toy", "samples=20"]


def row(samples: float) -> Row:
    return {"samples": samples}


def test_rows_end_at_the_first_milestone_past_the_samples() -> None:
    rows = [row(10), row(21), row(30)]
    assert cut_rows(rows, 20) == rows[:2]
    assert cut_rows(rows, 21) == rows[:2]
    assert cut_rows(rows, 40) == rows


@pytest.mark.parametrize(("status", "stops"), [(0, False), (2, False), (130, True), (-15, True)])
def test_only_a_stopped_training_stops_the_benchmark(
    status: int,
    stops: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trainings = []
    folder = tmp_path / "one"
    rows = [row(20), row(30)]

    def train(overrides: list[str]) -> int:
        trainings.append(overrides)
        folder.mkdir(exist_ok=True)
        return status

    monkeypatch.setattr(finished_run, "train", train)
    monkeypatch.setattr(finished_run, "find_run_folder", lambda cfg, data: folder)
    monkeypatch.setattr(finished_run, "measure_milestones", lambda folder, measurement: rows)
    if stops:
        with pytest.raises(KeyboardInterrupt):
            train_and_measure(TOY, whole_card(32), "a run")
        return
    assert train_and_measure(TOY, whole_card(32), "a run") == ([] if status else rows[:1])
    stderr = capsys.readouterr().err
    assert ("a run: ended with status 2\n" in stderr) == bool(status)
    train_and_measure(TOY, whole_card(32), "a run")
    assert len(trainings) == (2 if status else 1)  # a finished training is not repeated


ENDLESS = "preset=toy publish=false threads=1 samples=9000000"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_training_too(number: int, tmp_path: Path) -> None:
    overrides = [*ENDLESS.split(), f"runs={tmp_path}"]
    code = f"from benchmarks.finished_run import train; raise SystemExit(train({overrides}))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        assert any("left" in line for line in benchmark.stdout)
        benchmark.send_signal(number)
        rest, _ = benchmark.communicate(timeout=60)  # a training that goes on keeps the pipe open
    assert "the same command goes on" in rest
    assert benchmark.returncode == STOPPED
    assert list(tmp_path.glob("*/checkpoint.pt"))
