"""A training run: everything that changes as it goes on, saved whole, and the way from one sample count to another."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from torch import Generator, nn

from pretrain.rl import checkpoint
from pretrain.rl.background import Background, one_thread
from pretrain.rl.learner import Diverged, Scalars
from pretrain.rl.loop import LoopConfig, Objective, iterate
from pretrain.rl.nets import GaussianPolicy, Value
from pretrain.rl.progress import Interrupt, Progress
from pretrain.rl.rollout import Env, Noise
from pretrain.rl.run_folder import Log

CHECKPOINT = "checkpoint.pt"


class Stateful(Protocol):
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any], /) -> None: ...


class StatefulEnv(Env, Stateful, Protocol):
    """An environment that can be saved and gone on with, bit for bit."""


class Nets(Protocol):
    """The networks of a run: what acts, what values, and whatever else is learned beside them."""

    @property
    def policy(self) -> GaussianPolicy: ...
    @property
    def value(self) -> Value: ...
    def modules(self) -> dict[str, nn.Module]: ...


class Turning(Protocol):
    """What goes on turn by turn, and can be saved between two of them."""

    iteration: int
    samples: int
    seconds: float

    def turn(self) -> Scalars: ...
    def snapshot(self) -> dict[str, Any]: ...


N = TypeVar("N", bound=Nets)
E = TypeVar("E", bound=StatefulEnv)


@dataclass
class Training(Generic[N, E]):
    """What a checkpoint holds. `memory` names further parts with a state, as a replay buffer."""

    nets: N
    env: E
    objective: Objective
    loop: LoopConfig
    noise: Noise
    rng: Generator
    memory: dict[str, Stateful] = field(default_factory=dict)
    background: Background = field(default_factory=Background)
    iteration: int = 0
    samples: int = 0
    seconds: float = 0.0

    def snapshot(self) -> dict[str, Any]:
        self.background.finish()
        return {
            "nets": {name: net.state_dict() for name, net in self.nets.modules().items()},
            "optimizers": {learner.name: learner.optimizer.state_dict() for learner in self.objective.learners},
            "env": self.env.snapshot(),
            "memory": {name: part.snapshot() for name, part in self.memory.items()},
            "learned": self.background.learned,
            "noise": self.noise.value,
            "rng": self.rng.get_state(),
            "iteration": self.iteration,
            "samples": self.samples,
            "seconds": self.seconds,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self.background.finish()
        for name, net in self.nets.modules().items():
            net.load_state_dict(tree["nets"][name])
        for learner in self.objective.learners:
            learner.optimizer.load_state_dict(tree["optimizers"][learner.name])
        self.env.restore(tree["env"])
        for name, part in self.memory.items():
            part.restore(tree["memory"][name])
        self.background.learned = tree.get("learned", {})  # runs of before had nothing in the background
        self.noise.value = tree["noise"]
        self.rng.set_state(tree["rng"])
        self.iteration, self.samples, self.seconds = tree["iteration"], tree["samples"], tree["seconds"]

    def resume(self, folder: Path, samples: int) -> bool:
        """Go on from `folder`'s checkpoint, if there is one, to `samples`. ValueError if it is beyond them already."""
        file = folder / CHECKPOINT
        if file.exists():
            restored(self, file)
        if self.samples >= samples + self.loop.horizon * self.env.num_envs:
            beyond = f"has taken {self.samples:,} samples already"
            raise ValueError(
                f"samples={samples}: {folder} {beyond}; ask for as many or more, or for a run of another name"
            )
        return file.exists()

    def turn(self) -> Scalars:
        """One turn of the loop, counted."""
        scalars = iterate(
            self.env,
            self.nets.policy,
            self.nets.value,
            self.objective,
            self.loop,
            self.noise,
            self.rng,
            self.background,
        )
        self.iteration += 1
        self.samples += self.loop.horizon * self.env.num_envs
        return scalars


def restored(part: Stateful, file: Path) -> None:
    """`part` as its checkpoint has it. ValueError of a file that is none, or that is of something else."""
    tree = checkpoint.load(file)
    try:
        part.restore(tree)
    except (KeyError, TypeError, RuntimeError) as error:
        other = "its layers or worlds are not the ones of now: an older version of this program may have written it"
        reason = other if isinstance(error, RuntimeError) else repr(error)  # torch's own words are a page of names
        raise ValueError(f"{file} is no checkpoint of this run: {reason}; without it, the run begins anew") from None


def go_on(
    training: Turning,
    samples: int,
    folder: Path,
    *,
    label: str,
    shown: dict[str, str],
    checkpoint_interval: float,
    after: Callable[[Scalars], Scalars] = lambda scalars: {},
) -> bool:
    """Turn after turn, up to `samples`. Returns whether it got there and nobody asked it to leave: Ctrl-C and SIGTERM save,
    and are heard in the last turn as well.

    `after` is called once a turn with what it measured, and may add to the log. `shown` is the progress note:
    label -> logged name. Diverged leaves the last checkpoint as it is.
    """
    log, progress = Log(folder, training.iteration), Progress(samples, training.samples, label)
    gc.collect()
    gc.freeze()  # no walk over what lives as long as the process, neither between turns nor, for seconds, on its way out
    saved = time.monotonic()
    with closing(log), closing(progress), one_thread(), _last_words(training, folder), Interrupt() as interrupt:
        while training.samples < samples and not interrupt.asked:
            scalars = _turned(training, after)
            log.write(training.iteration, {"samples": training.samples, "seconds": training.seconds, **scalars})
            progress.update(training.samples, "  ".join(f"{name} {scalars[key]:.3g}" for name, key in shown.items()))
            if time.monotonic() - saved > checkpoint_interval:
                checkpoint.save(folder / CHECKPOINT, training.snapshot())
                saved = time.monotonic()
        checkpoint.save(folder / CHECKPOINT, training.snapshot())
        return training.samples >= samples and not interrupt.asked


@contextmanager
def _last_words(training: Turning, folder: Path) -> Iterator[None]:
    """Diverged says after how many samples, and what is left."""
    try:
        yield
    except Diverged as error:
        kept = folder / CHECKPOINT
        whole = f"{kept} is as it was before" if kept.exists() else "it had saved nothing yet"
        raise Diverged(f"{error} after {training.samples:,} samples: the run stops; {whole}") from None


def _turned(training: Turning, after: Callable[[Scalars], Scalars]) -> Scalars:
    started, done = time.monotonic(), training.samples
    scalars = training.turn()
    for name in (key for key, skipped in scalars.items() if key.endswith("/skipped") and skipped):
        print(f"after {done:,} samples: {name} {scalars[name]:.0f}, gradient not finite", file=sys.stderr)
    scalars |= after(scalars)
    training.seconds += time.monotonic() - started
    return scalars
