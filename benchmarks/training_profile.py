"""Where the time of a training goes: seconds of processor time by part, and a trace of every
operator that a browser opens (chrome://tracing, ui.perfetto.dev).

make profile            or   python -m benchmarks.training_profile preset=everyday
"""

from __future__ import annotations

import argparse
import functools
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function

from pretrain.assembly import SkillTraining, build_training, warm_up
from pretrain.assist.forces import AssistForces
from pretrain.assist.reference_tracker import ReferenceTracker
from pretrain.assist.tracking_termination import TrackingTermination
from pretrain.cli import command
from pretrain.config import PretrainConfig
from pretrain.rl import iteration
from pretrain.rl.background import use_one_thread
from pretrain.rl.learner import Learner
from pretrain.rl.nets import GaussianPolicy
from pretrain.sim import env
from pretrain.sim.mujoco_cpu import MujocoBackend
from pretrain.training_data import load_training_data

WARM_UP = 3  # iterations before the clock starts
# part -> the functions that it consists of: (module or class, name)
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "simulate": ((MujocoBackend, "advance"),),
    "read state": ((MujocoBackend, "state"), (MujocoBackend, "touching")),
    "place and push": ((MujocoBackend, "place"), (MujocoBackend, "push")),
    "style features": ((env, "style_frame"),),
    "observation": ((env, "proprioception"),),
    "assistance force": ((AssistForces, "apply"),),
    "reference phase": ((ReferenceTracker, "advance"),),
    "tracking error": ((ReferenceTracker, "tracking_error"),),
    "nearest window": ((TrackingTermination, "distance"),),
    "distance to mean": ((TrackingTermination, "distance_to_mean"),),
    "reset": ((env.CharacterEnv, "reset"),),
    "policy": ((GaussianPolicy, "act"),),
    "value and rewards": ((iteration, "score"),),
    "advantages": ((iteration, "add_advantages"),),
}


class PartTimer:
    """CPU time by thread and part; a part inside a part is not counted twice."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._local = threading.local()

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        inner: list[float] = getattr(self._local, "inner", [])
        self._local.inner = inner
        inner.append(0.0)
        start = time.thread_time()
        try:
            with record_function(part):
                yield
        finally:
            whole = time.thread_time() - start
            own = whole - inner.pop()
            background = threading.current_thread() is not threading.main_thread()
            self.seconds["background" if background else "main", part] += own
            if inner:
                inner[-1] += whole

    def wrap(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with self.measure(part):
                return function(*args, **kwargs)

        return measured

    def wrap_iterator(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Iterator[Any]:
            steps = function(*args, **kwargs)
            while True:
                with self.measure(part):
                    step = next(steps, None)
                if step is None:
                    return
                yield step

        return measured


@contextmanager
def measure_parts(timer: PartTimer) -> Iterator[None]:
    """Measure every part, and every learner's fit by its name, while this is open."""
    saved: list[tuple[Any, str, Any]] = []

    def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
        saved.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    for part, functions in PARTS.items():
        for owner, name in functions:
            function = getattr(owner, name)
            replace(owner, name, timer.wrap(part, function))
    # a generator runs between its steps, and under the name that run_iteration calls
    replace(
        iteration, "collect_steps", timer.wrap_iterator("rest of a step", iteration.collect_steps)
    )
    fit = Learner.fit

    def measured_fit(learner: Learner, *args: Any) -> Any:
        with timer.measure(f"fit {learner.name}"):
            return fit(learner, *args)

    replace(Learner, "fit", measured_fit)
    try:
        yield
    finally:
        for owner, name, function in reversed(saved):
            setattr(owner, name, function)


def profile_training(
    training: SkillTraining, iterations: int, trace: Path | None
) -> dict[tuple[str, str], float]:
    """us of CPU time a sample, by thread and part, over `iterations`; one more iteration is written
    to `trace`, because tracing costs time."""
    timer = PartTimer()
    samples = iterations * training.env.num_envs * training.loop.horizon
    with use_one_thread(), measure_parts(timer):
        for _ in range(WARM_UP):
            training.iterate()
        training.background.finish_fits()
        timer.seconds.clear()
        with timer.measure("rest of an iteration"):
            for _ in range(iterations):
                training.iterate()
        training.background.finish_fits()
        found = {key: 1e6 * seconds / samples for key, seconds in timer.seconds.items()}
        if trace:
            both = _ExperimentalConfig(profile_all_threads=True)
            with profile(activities=[ProfilerActivity.CPU], experimental_config=both) as profiler:
                training.iterate()
                training.background.finish_fits()
            trace.parent.mkdir(parents=True, exist_ok=True)
            profiler.export_chrome_trace(str(trace))
    return found


def format_table(found: dict[tuple[str, str], float]) -> str:
    """Parts by thread, the most expensive first."""
    lines = [f"{'thread':<12}{'part':<24}{'us a sample':>12}{'share':>8}"]
    total = sum(found.values())
    ordered = sorted(found.items(), key=lambda item: (item[0][0] != "main", -item[1]))
    for (thread, part), us in ordered:
        lines.append(f"{thread:<12}{part:<24}{us:>12.2f}{us / total:>8.1%}")
    return "\n".join([*lines, f"{'both':<12}{'all':<24}{total:>12.2f}{1:>8.1%}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--trace", type=Path, default=Path("build/training_trace.json"))
    parser.add_argument("overrides", nargs="*", help="configuration of pretrain.train")
    options = parser.parse_args()
    if options.iterations < 1:
        parser.error(f"--iterations {options.iterations} is not 1 or more")

    def run(cfg: PretrainConfig) -> int:
        data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
        training = build_training(cfg, data)
        short = cfg.warm.model_copy(update={"encoder_steps": 50, "clone_steps": 50})
        warm_up(cfg.model_copy(update={"warm": short}), data, training)
        print(format_table(profile_training(training, options.iterations, options.trace)))
        print(f"one iteration in {options.trace}: open it in chrome://tracing or ui.perfetto.dev")
        return 0

    return command(run, PretrainConfig, "pretrain.conf", options.overrides)


if __name__ == "__main__":
    sys.exit(main())
