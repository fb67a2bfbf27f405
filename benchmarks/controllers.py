"""How fast controllers are trained, compared with pretraining: control steps a second of both
training loops, by turns in one process.

python -m benchmarks.controllers task=location skill=mobility@8
python -m benchmarks.controllers --json --preset locomotion task=reach num_envs=128
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any, Protocol

from benchmarks.pretraining import load_warm_training
from hlc.config import CONFIG_MODEL, HlcConfig
from hlc.parent import open_parent
from hlc.train import build
from pretrain.cli import command
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config
from pretrain.rl.background import Background, use_one_thread
from pretrain.rl.learner import Scalars
from skills_store.open import open_store

SECONDS = 10.0  # of a turn


class Loop(Protocol):
    samples: int

    @property
    def background(self) -> Background: ...
    def iterate(self) -> Scalars: ...


def measure_rate(training: Loop) -> float:
    """Samples a second over SECONDS, including the learning still running at the end."""
    before = training.samples
    started = time.perf_counter()
    training.iterate()
    while time.perf_counter() - started < SECONDS:
        training.iterate()
    training.background.finish_fits()
    return (training.samples - before) / (time.perf_counter() - started)


def measure(cfg: HlcConfig, preset: str, rounds: int) -> dict[str, Any]:
    """Medians over `rounds` turns of each loop, without the first turn."""
    task = build(cfg, open_parent(open_store(cfg.store), cfg.skill))
    overrides = [f"preset={preset}", f"threads={cfg.threads}"]
    pretraining = load_warm_training(load_config(PretrainConfig, "pretrain.conf", overrides))
    decisions: list[float] = []
    samples: list[float] = []
    with use_one_thread():
        for _ in range(rounds + 1):
            decisions.append(measure_rate(task))
            samples.append(measure_rate(pretraining))
    rate = statistics.median(decisions[1:])
    steps = cfg.llc_steps * rate
    of_pretraining = statistics.median(samples[1:])
    return {
        "decisions_per_s": round(rate),
        "control_steps_per_s": round(steps),
        "pretraining_samples_per_s": round(of_pretraining),
        "ratio": round(steps / of_pretraining, 2),
        "num_envs": cfg.num_envs,
        "pretraining_num_envs": pretraining.env.num_envs,
        "rounds": rounds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="locomotion", help="of pretraining")
    parser.add_argument("overrides", nargs="*", help="configuration of hlc.train, as task=reach")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} is not 1 or more")

    def run(cfg: HlcConfig) -> int:
        result = measure(cfg, options.preset, options.rounds)
        lines = [f"{key:<28}{value:>10}" for key, value in result.items()]
        print(json.dumps(result) if options.json else "\n".join(lines))
        return 0

    return command(run, CONFIG_MODEL, "hlc.conf", options.overrides)


if __name__ == "__main__":
    sys.exit(main())
