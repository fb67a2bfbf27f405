"""Motion tracking: a policy that follows reference clips, by DeepMimic, ADD or AWR. The baseline
for what a body can do of its clips; nothing is published.

python -m pretrain.tracking motions=locomotion
python -m pretrain.tracking motions=recipe.yaml reward=add      a discriminator in place of errors
python -m pretrain.tracking motions=recipe.yaml algorithm=awr   regression in place of PPO

A run ends with the share of episodes that last to the end of each clip and the distance of root,
head, hands and feet from the reference, written to evaluation.json in its folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pretrain.cli import command, program
from pretrain.help_text import describe_config
from pretrain.rl.learner import Scalars
from pretrain.rl.run_folder import NOT_LEARNING, hash_config, lock_run_folder, write_atomically
from pretrain.rl.training import Monitor, train_until
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.evaluation import Measures, evaluate
from pretrain.tracking.training import WINDOW, TrackingTraining, build
from pretrain.training_data import load_training_data

CONFIG = "pretrain.tracking.conf"
FILE = "evaluation.json"


def train(cfg: TrackingConfig, training: TrackingTraining, folder: Path) -> bool:
    """Train up to `cfg.samples`. Returns whether it reached them uninterrupted."""
    progress = {"steps": "episode/length", "tracking": "reward/env"}
    if cfg.reward == "add":
        progress["add"] = "reward/add"

    def count_broken() -> Scalars:
        return {"broken": training.env.env.num_broken}

    monitor = Monitor("tracking", progress, cfg.checkpoint_interval, count_broken)
    return train_until(training, cfg.samples, folder, monitor)


def run(cfg: TrackingConfig) -> int:
    data = load_training_data(cfg.character, cfg.motions, WINDOW)
    folder = Path(cfg.runs) / f"tracking-{hash_config(cfg, NOT_LEARNING, data.dataset.digest)}"
    with lock_run_folder(folder, cfg):
        training = build(cfg, data)
        training.resume(folder, cfg.samples)
        print(
            f"{folder}: tracking of {len(data.library.names)} clips by {cfg.reward} and "
            f"{cfg.algorithm}, {training.samples:,} of {cfg.samples:,} samples"
        )
        if not train(cfg, training, folder):
            print(f"stopped after {training.samples:,} samples; the same command goes on")
            return 130
        measures = evaluate(cfg, data, training.nets.policy)
        report = {
            "samples": training.samples,
            "seconds": round(training.seconds),
            "clips": measures,
        }
        write_atomically(folder / FILE, json.dumps(report, indent=2))
    print(describe(measures))
    return 0


def describe(measures: Measures) -> str:
    """A table with a row for each clip."""
    width = max(len(name) for name in measures)
    lines = [f"{'clip':<{width}}  completed  seconds  body error (m)  reward"]
    for name, measure in measures.items():
        completed, seconds, reward = (
            measure[key]["mean"] for key in ("completed", "seconds", "reward")
        )
        error = measure["body_error"]["mean"]
        body_error = "-" if error is None else f"{error:.3f}"  # of no completed episode
        lines.append(
            f"{name:<{width}}  {completed:9.2f}  {seconds:7.1f}  {body_error:>14}  {reward:6.2f}"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    return command(run, TrackingConfig, CONFIG, arguments)


def describe_program() -> str:
    return describe_config(TrackingConfig, CONFIG, __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe_program))
