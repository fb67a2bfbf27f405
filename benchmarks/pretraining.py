"""How fast pretraining runs, against the engine alone: same model, worlds, threads and run.

python -m benchmarks.pretraining --json
python -m benchmarks.pretraining --against REV       this revision and REV by turns
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from benchmarks.revision import ROOT, check_out, compare_medians, run_json
from pretrain.assembly import SkillTraining, build_training, warm_up
from pretrain.characters.state import CharacterState
from pretrain.cli import command
from pretrain.config import PretrainConfig
from pretrain.rl.background import use_one_thread
from pretrain.sim.backend import Backend, count_threads
from pretrain.training_data import load_training_data

COMPARED = (
    "samples_per_s",
    "engine_steps_per_s",
    "cpu_us_per_sample",
    "engine_cpu_us_per_sample",
    "peak_memory_mb",
)
TURNS = 20  # in a round, which waits for background learning at its end, unlike a run


class RecordingBackend:
    """A backend that records its calls, so that they can be repeated on the engine alone."""

    def __init__(self, backend: Backend):
        self._backend = backend
        self.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def place(self, ids: Tensor, state: CharacterState) -> None:
        self._record("place", ids.clone(), state.map(Tensor.clone))

    def push(self, ids: Tensor, body: str, wrench: Tensor) -> None:
        self._record("push", ids.clone(), body, wrench.clone())

    def advance(self, targets: Tensor) -> Tensor:
        return self._record("advance", targets.clone())

    def _record(self, name: str, *arguments: Any) -> Any:
        self._calls.append((name, arguments))
        return getattr(self._backend, name)(*arguments)

    def clear(self) -> None:
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._before = self._backend.snapshot()

    def replay(self) -> np.ndarray:
        """The time (`clocks`) in which the engine alone repeats the recorded steps."""
        now = self._backend.snapshot()
        simulated = np.zeros(2)
        self._backend.restore(self._before)
        for name, arguments in self._calls:
            started = clocks()
            getattr(self._backend, name)(*arguments)
            simulated += (clocks() - started) * (name == "advance")
        self._backend.restore(now)
        return simulated


def clocks() -> np.ndarray:
    """Wall-clock seconds, and CPU seconds of this process on all cores."""
    return np.array([time.perf_counter(), time.process_time()])


def load_warm_training(cfg: PretrainConfig) -> SkillTraining:
    """The training of a configuration, after a short warm start."""
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    warm = cfg.warm.model_copy(update={"clone_steps": 50})
    warm_up(cfg.model_copy(update={"warm": warm}), data, training)
    return training


def measure(cfg: PretrainConfig, rounds: int) -> dict[str, Any]:
    """Medians over rounds of TURNS turns of the real training loop, without the first round; after
    each round the engine alone repeats its steps in the same worlds. A round ends when its
    background learning ends. The overhead of a rollout is its extra time over the engine alone,
    including that due to background learning. CPU time per sample, in all and of the engine,
    depends less on the machine's other load."""
    training = load_warm_training(cfg)
    recorder: Any = RecordingBackend(training.env.env.backend)
    training.env.env.backend = recorder
    samples = TURNS * cfg.num_envs * cfg.ppo.horizon
    seen = []
    with use_one_thread():
        for _ in range(rounds + 1):
            recorder.clear()
            started = clocks()
            collected = sum(training.iterate()["time/collect"] for _ in range(TURNS))
            training.background.finish_fits()
            whole = clocks() - started
            seen.append((*recorder.replay(), collected, *whole))
    simulated, stepping, collected, whole, working = np.array(seen[1:]).T  # s, by round
    return {
        "samples_per_s": round(samples / np.median(whole)),
        "engine_steps_per_s": round(samples / np.median(simulated)),
        "ratio": round(np.median(simulated / whole), 3),
        "rollout_overhead": round(np.median(collected) / np.median(simulated) - 1, 3),
        "cpu_us_per_sample": round(1e6 * np.median(working) / samples, 1),
        "engine_cpu_us_per_sample": round(1e6 * np.median(stepping) / samples, 1),
        "num_envs": cfg.num_envs,
        "horizon": cfg.ppo.horizon,
        "threads": count_threads(cfg.threads),
        "rounds": rounds,
    }


def compare(revision: str, turns: int, arguments: Sequence[str]) -> str:
    """A table of this revision and another one, each measured `turns` times, one after the other,
    by its own benchmark: medians, and their ratios."""
    module = "benchmarks.pretraining"
    now: list[dict[str, Any]] = []
    before: list[dict[str, Any]] = []
    with check_out(revision) as tree:
        for _ in range(turns):
            before.append(run_json(tree, module, ["--json", *arguments]))
            now.append(run_json(ROOT, module, ["--json", *arguments]))
    lines = [f"{'':<26}{'now':>10}{revision[:10]:>12}{'ratio':>8}"]
    for key, (ours, theirs, ratio) in compare_medians(now, before, COMPARED).items():
        lines.append(f"{key:<26}{ours:>10}{theirs:>12}{ratio:>8}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--against", metavar="REV", help="compare with this revision of git")
    parser.add_argument("--turns", type=int, default=3, help="times that --against runs each")
    parser.add_argument(
        "overrides", nargs="*", help="configuration of pretrain.train, as num_envs=512"
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} is not 1 or more")
    if options.turns < 1:
        parser.error(f"--turns {options.turns} is not 1 or more")
    if options.against is not None:
        rounds = f"--rounds={options.rounds}"
        try:
            print(compare(options.against, options.turns, [rounds, *options.overrides]))
        except (ValueError, RuntimeError) as error:
            parser.error(str(error))
        return 0

    def run(cfg: PretrainConfig) -> int:
        result = measure(cfg, options.rounds)
        print(
            json.dumps(result)
            if options.json
            else "\n".join(f"{key:<20}{value:>12}" for key, value in result.items())
        )
        return 0

    return command(run, PretrainConfig, "pretrain.conf", options.overrides)


if __name__ == "__main__":
    sys.exit(main())
