"""How fast pretraining runs, against the engine alone: same model, worlds, threads and run.

python -m benchmarks.pretraining --json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import torch
from torch import Tensor

from pretrain.config import PretrainConfig
from pretrain.material import load_material
from pretrain.rl.loop import iterate
from pretrain.rl.run import load_config
from pretrain.sim.backend import Backend
from pretrain.train import build, warm_up


class Stopwatch:
    """A backend that adds up the seconds of its simulation calls."""

    def __init__(self, backend: Backend):
        self._backend, self.seconds = backend, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def advance(self, targets: Tensor) -> Tensor:
        started = time.perf_counter()
        broken = self._backend.advance(targets)
        self.seconds += time.perf_counter() - started
        return broken


def measure(cfg: PretrainConfig, iterations: int) -> dict[str, Any]:
    """Medians over `iterations` turns of the real training loop, the first two left out."""
    material = load_material(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build(cfg, material)
    warm_up(cfg.model_copy(update={"warm": cfg.warm.model_copy(update={"clone_steps": 50})}), material, training)
    env = training.env.env
    watch: Any = Stopwatch(env.backend)
    env.backend = watch
    nets, samples = training.nets, cfg.num_envs * cfg.ppo.horizon
    turns = []
    for _ in range(iterations + 2):
        watch.seconds = 0.0
        scalars = iterate(
            training.env, nets.policy, nets.value, training.recipe, training.loop, training.noise, training.rng
        )
        turns.append((watch.seconds, scalars["time/collect"], scalars["time/collect"] + scalars["time/learn"]))
    simulated, collected, whole = (statistics.median(column) for column in zip(*turns[2:], strict=True))
    return {
        "samples_per_s": round(samples / whole),
        "engine_steps_per_s": round(samples / simulated),
        "ratio": round(simulated / whole, 3),
        "rollout_overhead": round((collected - simulated) / simulated, 3),
        "num_envs": cfg.num_envs,
        "horizon": cfg.ppo.horizon,
        "threads": torch.get_num_threads(),
        "iterations": iterations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("overrides", nargs="*", help="configuration of pretrain.train, as num_envs=512")
    asked = parser.parse_args()
    result = measure(load_config(PretrainConfig, "pretrain.conf", asked.overrides), asked.iterations)
    print(json.dumps(result) if asked.json else "\n".join(f"{key:<20}{value:>12}" for key, value in result.items()))


if __name__ == "__main__":
    main()
