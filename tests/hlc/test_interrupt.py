"""Ctrl-C in training: the iteration is finished, the checkpoint written, and a rerun resumes."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor

from hlc import train as training_module
from hlc.config import HlcConfig
from hlc.parent import Parent
from hlc.task_env import TaskEnv
from hlc.train import ControllerTraining, build, run
from pretrain.rl import checkpoint
from pretrain.rl.rollout import Batch, Step


@dataclass
class InterruptingEnv:
    """An environment that raises SIGINT in each decision."""

    inner: TaskEnv

    def __post_init__(self) -> None:
        self.num_envs = self.inner.num_envs
        self.env = self.inner.env
        self.observe = self.inner.observe
        self.reset = self.inner.reset
        self.snapshot = self.inner.snapshot

    def step(self, action: Tensor) -> Step:
        signal.raise_signal(signal.SIGINT)
        return self.inner.step(action)


def test_ctrl_c_saves_a_checkpoint_and_the_same_command_resumes(
    toy: HlcConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cfg = toy.model_copy(update={"publish": False})

    def build_interrupting(cfg: HlcConfig, parent: Parent) -> ControllerTraining:
        training = build(cfg, parent)
        training.env = cast(TaskEnv, InterruptingEnv(training.env))
        return training

    with monkeypatch.context() as patch:
        patch.setattr(training_module, "build", build_interrupting)
        assert run(cfg) == 130
    assert "stopped after 16 decisions" in capsys.readouterr().out
    [folder] = tmp_path.iterdir()
    saved: Batch = checkpoint.load(folder / "checkpoint.pt")["nets"]["policy"]
    assert all(torch.isfinite(x).all() for x in saved.values())
    assert run(cfg) == 0
    assert "going on after 16 of 32 decisions" in capsys.readouterr().out
