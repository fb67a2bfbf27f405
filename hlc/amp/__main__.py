"""AMP (Peng et al. 2021) on a task: one policy from scratch, without skills. A baseline for
controllers; nothing is published.

python -m hlc.amp task=location skill=mobility@8
python -m hlc.amp task=location skill=mobility@8 samples=150000000    continues to ten times as many

A run ends with its return, success and falls per minute, measured as `hlc.evaluate` does for a
controller, and written to evaluation.json in its folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hlc.amp.config import CONFIG_MODEL, AmpConfig
from hlc.amp.evaluation import evaluate
from hlc.amp.training import AmpTraining, build
from hlc.measures import SUMMARY
from hlc.parent import open_parent
from pretrain.cli import command, program
from pretrain.help_text import describe_config
from pretrain.rl.learner import Scalars
from pretrain.rl.run_folder import (
    NOT_LEARNING,
    hash_config,
    lock_run_folder,
    write_atomically,
)
from pretrain.rl.training import Monitor, train_until
from skills_store.open import open_store

FILE = "evaluation.json"


def train(cfg: AmpConfig, training: AmpTraining, folder: Path) -> bool:
    """Train up to `cfg.samples` control steps. Returns whether it reached them uninterrupted."""
    progress = {"steps": "episode/length", "task": "reward/env", "style": "reward/style"}

    def count_broken() -> Scalars:
        return {"broken": training.env.env.num_broken}

    monitor = Monitor(f"amp {cfg.task}", progress, cfg.checkpoint_interval, count_broken)
    return train_until(training, cfg.samples, folder, monitor)


def run(cfg: AmpConfig) -> int:
    parent = open_parent(open_store(cfg.store), cfg.skill)
    cfg = cfg.model_copy(update={"skill": parent.version.pinned})
    folder = Path(cfg.runs) / f"amp-{cfg.task}-{hash_config(cfg, NOT_LEARNING)}"
    with lock_run_folder(folder, cfg):
        training = build(cfg, parent)
        training.resume(folder, cfg.samples)
        print(f"{folder}: AMP on {cfg.task}, {training.samples:,} of {cfg.samples:,} samples")
        if not train(cfg, training, folder):
            print(f"stopped after {training.samples:,} samples; the same command goes on")
            return 130
        measures = evaluate(cfg, parent, training.nets.policy)
        measures |= {"samples": training.samples, "seconds": round(training.seconds)}
        write_atomically(folder / FILE, json.dumps(measures, indent=2))
    print(describe(measures))
    return 0


def describe(measures: dict[str, Any]) -> str:
    """A line for each measure, with its 95 % interval."""
    lines = []
    for key in SUMMARY:
        measure = measures[key]
        if measure["mean"] is None:
            continue
        line = f"{key:<18}{measure['mean']:8.3f}"
        if measure["interval"] is not None:
            low, high = measure["interval"]
            line += f"  ({low:.3f} to {high:.3f})"
        lines.append(line)
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    return command(run, CONFIG_MODEL, "hlc.amp.conf", arguments)


def describe_program() -> str:
    return describe_config(CONFIG_MODEL, "hlc.amp.conf", __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe_program))
