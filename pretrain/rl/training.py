"""A training run: its state, saved in checkpoints, and the loop up to a number of samples."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from torch import Generator

from pretrain.rl import checkpoint
from pretrain.rl.background import Background, use_one_thread
from pretrain.rl.iteration import LoopConfig, Nets, Objective, run_iteration
from pretrain.rl.learner import Diverged, Scalars
from pretrain.rl.progress import Interrupt, Progress
from pretrain.rl.rollout import Env, Noise
from pretrain.rl.run_folder import Log

CHECKPOINT = "checkpoint.pt"


class Stateful(Protocol):
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any], /) -> None: ...


class StatefulEnv(Env, Stateful, Protocol):
    """An environment that can be saved and restored bit for bit."""


class Trainable(Protocol):
    """A run of iterations that can be saved between two of them."""

    iteration: int
    samples: int
    seconds: float

    def iterate(self) -> Scalars: ...
    def snapshot(self) -> dict[str, Any]: ...


N = TypeVar("N", bound=Nets)
E = TypeVar("E", bound=StatefulEnv)


@dataclass
class Training(Generic[N, E]):
    """The state of a checkpoint; `extra_state` has further parts by name, such as a replay
    buffer."""

    nets: N
    env: E
    objective: Objective
    loop: LoopConfig
    noise: Noise
    rng: Generator
    extra_state: dict[str, Stateful] = field(default_factory=dict)
    background: Background = field(default_factory=Background)
    iteration: int = 0
    samples: int = 0
    seconds: float = 0.0

    def snapshot(self) -> dict[str, Any]:
        self.background.finish_fits()
        return {
            "nets": {name: net.state_dict() for name, net in self.nets.modules().items()},
            "optimizers": {
                learner.name: learner.optimizer.state_dict() for learner in self.objective.learners
            },
            "env": self.env.snapshot(),
            "extra_state": {name: part.snapshot() for name, part in self.extra_state.items()},
            "learned": self.background.learned,
            "noise": self.noise.value,
            "rng": self.rng.get_state(),
            "iteration": self.iteration,
            "samples": self.samples,
            "seconds": self.seconds,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self.background.finish_fits()
        for name, net in self.nets.modules().items():
            net.load_state_dict(tree["nets"][name])
        for learner in self.objective.learners:
            learner.optimizer.load_state_dict(tree["optimizers"][learner.name])
        self.env.restore(tree["env"])
        for name, part in self.extra_state.items():
            part.restore(tree["extra_state"][name])
        self.background.learned = tree["learned"]
        self.noise.value = tree["noise"]
        self.rng.set_state(tree["rng"])
        self.iteration = tree["iteration"]
        self.samples = tree["samples"]
        self.seconds = tree["seconds"]

    def resume(self, folder: Path, samples: int) -> bool:
        """Restore `folder`'s checkpoint, if there is one. ValueError if it is beyond `samples`."""
        file = folder / CHECKPOINT
        if file.exists():
            restore_from(self, file)
        if self.samples >= samples + self.loop.horizon * self.env.num_envs:
            raise ValueError(
                f"samples={samples}: {folder} has taken {self.samples:,} samples already; "
                "expected at least as many, or another name of the run"
            )
        return file.exists()

    def iterate(self) -> Scalars:
        """Run one iteration."""
        scalars = run_iteration(self)
        self.iteration += 1
        self.samples += self.loop.horizon * self.env.num_envs
        return scalars


@dataclass(frozen=True)
class Monitor:
    """Display, checkpoints and logging of a run."""

    label: str
    progress: dict[str, str]  # the note beside the progress bar: label -> logged name
    checkpoint_interval: float  # s
    # called after every iteration; its result is also logged
    on_iteration: Callable[[], Scalars] = dict


def restore_from(part: Stateful, file: Path) -> None:
    """Restore `part` from its checkpoint. ValueError for a file that is not one, or not of
    `part`."""
    tree = checkpoint.load(file)
    try:
        part.restore(tree)
    except (KeyError, TypeError, RuntimeError) as error:
        mismatch = (
            "its layers or worlds are not the ones of now: "
            "an older version of this program may have written it"
        )
        # torch's message is a page of parameter names
        reason = mismatch if isinstance(error, RuntimeError) else repr(error)
        text = f"{file} is no checkpoint of this run: {reason}; without it, the run begins anew"
        raise ValueError(text) from None


def train_until(training: Trainable, samples: int, folder: Path, monitor: Monitor) -> bool:
    """Iterate up to `samples`. Returns whether it reached them uninterrupted: Ctrl-C and SIGTERM
    save and stop, and also count in the last iteration.

    Diverged keeps the last checkpoint."""
    log = Log(folder, training.iteration)
    progress = Progress(samples, training.samples, monitor.label)
    gc.collect()
    # Exclude long-lived objects from garbage collection.
    gc.freeze()
    saved = time.monotonic()
    with (
        closing(log),
        closing(progress),
        use_one_thread(),
        _describe_divergence(training, folder),
        Interrupt() as interrupt,
    ):
        while training.samples < samples and not interrupt.requested:
            scalars = _iterate_once(training, monitor)
            _report(training, scalars, log, progress, monitor)
            if time.monotonic() - saved > monitor.checkpoint_interval:
                checkpoint.save(folder / CHECKPOINT, training.snapshot())
                saved = time.monotonic()
        checkpoint.save(folder / CHECKPOINT, training.snapshot())
        reached = training.samples >= samples and not interrupt.requested
    gc.unfreeze()
    return reached


@contextmanager
def _describe_divergence(training: Trainable, folder: Path) -> Iterator[None]:
    """Add the number of samples and the remaining checkpoint to Diverged."""
    try:
        yield
    except Diverged as error:
        saved = folder / CHECKPOINT
        remains = f"{saved} is as it was before" if saved.exists() else "it had saved nothing yet"
        text = f"{error} after {training.samples:,} samples: the run stops; {remains}"
        raise Diverged(text) from None


def _iterate_once(training: Trainable, monitor: Monitor) -> Scalars:
    """The scalars of one iteration, timed; reports skipped gradient steps on stderr."""
    start = time.monotonic()
    samples = training.samples
    scalars = training.iterate()
    for name in [key for key, count in scalars.items() if key.endswith("/skipped") and count]:
        text = f"after {samples:,} samples: {name} {scalars[name]:.0f}, gradient not finite"
        print(text, file=sys.stderr)
    iterated = time.monotonic()
    training.seconds += iterated - start  # a milestone below includes its own iteration
    scalars |= monitor.on_iteration()
    training.seconds += time.monotonic() - iterated
    return scalars


def _report(
    training: Trainable, scalars: Scalars, log: Log, progress: Progress, monitor: Monitor
) -> None:
    counts = {"samples": training.samples, "seconds": training.seconds}
    log.write(training.iteration, {**counts, **scalars})
    notes = [f"{label} {scalars[key]:.3g}" for label, key in monitor.progress.items()]
    progress.update(training.samples, "  ".join(notes))
