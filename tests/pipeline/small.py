"""Small trainings: their settings, what they log, and commands in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import torch

from pretrain.config import PretrainConfig
from pretrain.overrides import load_config


def python(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=env
    )


PARENT = "mobility@8"  # bundled
# without assistance from the start, and so phase-locked
PHASE_LOCKED = ("curriculum.assist_start=0",)


def toy(*arguments: str) -> PretrainConfig:
    return load_config(PretrainConfig, "pretrain.conf", ["preset=toy", *arguments])


def weights(training) -> torch.Tensor:
    return torch.cat(
        [p.flatten() for net in training.nets.modules().values() for p in net.parameters()]
    )


SMALL = (
    *(
        "num_envs=64",
        "warm.encoder_steps=20",
        "warm.clone_steps=20",
        "disc.disc_buffer_size=2_000",
        "disc.disc_replay_samples=16",
    ),
    *(f"{part}.{size}" for part in ("disc", "enc") for size in ("rows=256", "minibatch=256")),
    *(f"{part}=[32]" for part in ("ppo.hidden", "ppo.value_hidden", "disc.hidden", "enc.hidden")),
)


def learned(folder: Path) -> list[dict[str, float]]:
    """What a run has logged, without times."""
    rows = [json.loads(row) for row in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: x for key, x in row.items() if not key.startswith(("time/", "seconds"))}
        for row in rows
    ]
