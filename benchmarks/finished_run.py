"""Trainings of a benchmark, each in a process of its own, run once and measured at milestones."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.learning import Measurement, Row, measure_milestones
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config
from pretrain.train import find_run_folder
from pretrain.training_data import load_training_data

STOPPED = 130  # exit status of a training that Ctrl-C or SIGTERM ended


def train_and_measure(overrides: Sequence[str], measurement: Measurement, title: str) -> list[Row]:
    """The milestones of the training with `overrides`, up to the first one at `samples` or later;
    empty if the training failed, which stderr reports under `title`. A finished training is not run
    again. Raises KeyboardInterrupt if it was stopped."""
    cfg = load_config(PretrainConfig, "pretrain.conf", overrides)
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    folder = find_run_folder(cfg, data)
    trained = folder / f"trained-{cfg.samples}"
    if not trained.exists():
        print(title, flush=True)
        status = train(overrides)
        if status == STOPPED or status < 0:
            raise KeyboardInterrupt
        if status:
            print(f"{title}: ended with status {status}", file=sys.stderr)
            return []
        trained.touch()
    return cut_rows(measure_milestones(folder, measurement), cfg.samples)


def train(overrides: Sequence[str]) -> int:
    """The exit status of the training, a child process. Ctrl-C and SIGTERM to this process are
    passed on to it: it saves, then stops.

    The child has a session of its own, or a terminal would send it Ctrl-C a second time.
    """
    command = [sys.executable, "-m", "pretrain.train", *overrides]
    with subprocess.Popen(command, start_new_session=True) as process, forward_signals(process):
        return process.wait()


@contextmanager
def forward_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGINT and SIGTERM go to `process` instead of this one."""

    def forward(number: int, frame: object) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cut_rows(rows: Sequence[Row], samples: int) -> list[Row]:
    """The milestones up to the first one at `samples` or later: a run may have gone on."""
    before = [row for row in rows if row["samples"] < samples]
    return [*before, *rows[len(before) : len(before) + 1]]
