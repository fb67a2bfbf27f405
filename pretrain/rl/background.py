"""Two cores for a loop: what the engine leaves of the second one is for learners that nobody waits for, then for rewards."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Generator

from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.rollout import Batch

PATIENCE = 10  # niceness of what is done here: the engine comes first, this has the gaps around it
T = TypeVar("T")


@dataclass(frozen=True)
class Asked(Generic[T]):
    """A call whose answer somebody will wait for."""

    call: Callable[[], T]
    answer: Future[T]


class Background:
    """Work beside the loop, one piece after the other: learners that are fitted while the next rollout is collected, which
    needs the policy alone, and then what its steps are worth to what has been learned.

    Nobody else may look at what they learn between `begin` and `finish`. Layers this small gain little from a second thread,
    two networks on one thread each do; and the bits are the same on one core as on many: on Intel's processors a product that
    two threads share is rounded otherwise.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "learners", _be_patient)
        self._fits: list[Future[Scalars]] = []
        self.learned: Scalars = {}  # metrics that nobody has asked for yet

    def ask(self, call: Callable[[], T]) -> Asked[T]:
        """`call`, after all that has begun and been asked before."""
        return Asked(call, self._thread.submit(call))

    def answers(self, asked: Sequence[Asked[T]]) -> list[T]:
        """What they came to, once nobody learns any more. Whoever waits for it takes the last calls upon itself, where nobody
        has begun them."""
        self.finish()
        here = {i: asked[i].call() for i in reversed(range(len(asked))) if asked[i].answer.cancel()}
        return [here[i] if i in here else each.answer.result() for i, each in enumerate(asked)]

    def begin(self, learners: Sequence[Learner], batch: Batch, seeds: Sequence[int]) -> None:
        """One learner after the other, each with random numbers of its own."""
        assert not self._fits, "what has begun is finished first"
        self._fits = [
            self._thread.submit(learner.fit, batch, Generator().manual_seed(seed))
            for learner, seed in zip(learners, seeds, strict=True)
        ]

    def finish(self) -> None:
        """Wait until nobody learns any more. Diverged, if one of them has."""
        fits, self._fits = self._fits, []
        wait(fits)
        for fit in fits:
            self.learned |= fit.result()

    def report(self) -> Scalars:
        """What they have learned since the last report."""
        self.finish()
        learned, self.learned = self.learned, {}
        return learned


def _be_patient() -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":  # elsewhere niceness is of processes, not of threads
        with suppress(OSError):  # a sandbox may know none: then it is only slower
            own = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(own + PATIENCE, 19))


@contextmanager
def one_thread() -> Iterator[None]:
    """For layers this small a second thread does nothing but spin, on a core that the engine could use."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(cores)
