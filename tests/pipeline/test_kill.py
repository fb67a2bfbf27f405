"""Runs that are killed or stopped by a signal, in processes of their own."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from pretrain.rl import checkpoint
from pretrain.train import main
from tests.pipeline.forked import Forked, fork
from tests.pipeline.small import SMALL, learned


def started(folder: Path, *arguments: str) -> Forked:
    """A toy run in a process of its own."""
    output = folder.with_name(f"{folder.name}.txt")
    how = ["preset=toy", "publish=false", "threads=1", f"runs={folder}", *arguments]
    return fork(output, how)


def begun(folder: Path, *arguments: str) -> Forked:
    """A toy run in a process of its own, up to its first line of progress."""
    run = started(folder, *arguments)
    assert any("left" in line for line in run.lines())
    return run


def saved(folder: Path) -> dict[str, torch.Tensor]:
    (file,) = folder.glob("*/checkpoint.pt")
    nets = checkpoint.load(file)["nets"]
    return {f"{net}.{key}": x for net, state in nets.items() for key, x in state.items()}


# with a milestone halfway and one at the end, and a checkpoint after every iteration
KILLED = (*SMALL, "samples=2048", "milestone_interval=1024", "checkpoint_interval=1e-3")

MOMENTS = {
    "metrics.jsonl": "before its first checkpoint",
    "checkpoint.tmp": "as it saves",
    "checkpoint.pt": "between two iterations",
    "milestones/*1024.pt": "after its first milestone",
}


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("never_killed")
    assert started(folder, *KILLED).end()[0] == 0
    return folder


def written_since(start: float, files: Iterable[Path]) -> bool:
    with suppress(FileNotFoundError):  # renamed meanwhile
        return any(file.stat().st_mtime >= start for file in files)
    return True


def left(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, list[dict[str, float]]]]:
    """Networks of a finished run by file and name, and its logs without times."""
    (run,) = folder.iterdir()
    nets: dict[str, torch.Tensor] = {}
    for file in sorted(run.rglob("*.pt")):
        tree = checkpoint.load(file)
        for net, state in tree["nets"].items():
            nets |= {f"{file.relative_to(run)}.{net}.{key}": x for key, x in state.items()}
    return nets, {
        str(log.parent.relative_to(run)): learned(log.parent) for log in run.rglob("metrics.jsonl")
    }


def assert_the_same_is_left(folder: Path, other: Path) -> None:
    (nets, logs) = left(folder)
    (other_nets, other_logs) = left(other)
    assert nets.keys() == other_nets.keys()
    assert [key for key in nets if not torch.equal(nets[key], other_nets[key])] == []
    assert logs == other_logs


def test_run_killed_at_each_write_stage_ends_bit_identical(never_killed, tmp_path):
    for sign, moment in MOMENTS.items():
        start = time.time()
        run = started(tmp_path, *KILLED)
        while run.process.is_alive() and not written_since(start, tmp_path.glob(f"*/{sign}")):
            time.sleep(0.002)
        run.process.kill()
        assert run.end()[0] == -signal.SIGKILL, f"it was not killed {moment}"
    assert started(tmp_path, *KILLED).end()[0] == 0
    assert_the_same_is_left(tmp_path, never_killed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_repeatedly_killed_run_ends_bit_identical(never_killed, tmp_path, seed):
    draw = random.Random(seed)
    kills = 0
    while True:
        run = started(tmp_path, *KILLED)
        # increasing, or a slow machine would not get past the warm start
        run.process.join(draw.uniform(0, (4 + kills) / 4))
        run.process.kill()
        if run.end()[0] == 0:
            break
        kills += 1
    assert kills > 3
    assert_the_same_is_left(tmp_path, never_killed)


def test_sigterm_saves_at_once(tmp_path):
    run = begun(tmp_path, "samples=400_000")
    start = time.monotonic()
    run.process.terminate()
    status, printed = run.end()
    assert time.monotonic() - start < 2
    assert status == 130
    assert "the same command goes on" in printed
    assert saved(tmp_path)


def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path):
    how = ["preset=toy", "publish=false", "threads=1", f"runs={tmp_path}"]
    command = [sys.executable, "-m", "pretrain.train", *how, "samples=400_000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("left" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the same command goes on" in rest
    (file,) = tmp_path.glob("*/checkpoint.pt")
    done = checkpoint.load(file)["samples"]
    assert main([*how, f"samples={done + 1024}"]) == 0
    assert checkpoint.load(file)["samples"] == done + 1024
