"""Work in parallel to the training loop, on the core that the engine leaves idle: first the
learners other than the policy's, then the scores of the steps taken."""

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

NICENESS = 10  # added to the thread's niceness: the engine has priority
T = TypeVar("T")


@dataclass(frozen=True)
class PendingCall(Generic[T]):
    """A call that has been submitted, and its result."""

    call: Callable[[], T]
    future: Future[T]


class Background:
    """One thread that runs calls in order: learners are fitted while the next rollout is collected,
    which needs only the policy; then the rollout's steps are scored with the fitted networks.

    Between `start_fits` and `finish_fits` nothing else may read the networks that are fitted here.
    Layers this small gain little from a second thread; two networks on one thread each do. One
    thread per network also gives the same results on one core and on many: on Intel processors a
    product shared by two threads is rounded differently."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "learners", _lower_priority)
        self._fits: list[Future[Scalars]] = []
        self.learned: Scalars = {}  # metrics not yet taken

    def submit(self, call: Callable[[], T]) -> PendingCall[T]:
        """Run `call` after all earlier fits and calls."""
        return PendingCall(call, self._thread.submit(call))

    def results(self, pending: Sequence[PendingCall[T]]) -> list[T]:
        """The results of `pending`, after all fits. The caller's thread runs calls that have not
        begun, last first."""
        self.finish_fits()
        computed: dict[int, T] = {}
        for i in reversed(range(len(pending))):
            if pending[i].future.cancel():
                computed[i] = pending[i].call()
        return [
            computed[i] if i in computed else call.future.result() for i, call in enumerate(pending)
        ]

    def start_fits(self, learners: Sequence[Learner], batch: Batch, seeds: Sequence[int]) -> None:
        """Fit the learners in order, each with its own seed."""
        assert not self._fits, "call finish_fits before the next start_fits"
        self._fits = [
            self._thread.submit(learner.fit, batch, Generator().manual_seed(seed))
            for learner, seed in zip(learners, seeds, strict=True)
        ]

    def finish_fits(self) -> None:
        """Wait until all fits are done. Raises Diverged if one diverged."""
        fits = self._fits
        self._fits = []
        wait(fits)
        for fit in fits:
            self.learned |= fit.result()

    def take_metrics(self) -> Scalars:
        """Take the metrics of all fits since the last call."""
        self.finish_fits()
        learned = self.learned
        self.learned = {}
        return learned


def _lower_priority() -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":  # elsewhere niceness is per process, not per thread
        with suppress(OSError):  # a sandbox may refuse it; the priority is then unchanged
            current = os.getpriority(os.PRIO_PROCESS, 0)
            niceness = min(current + NICENESS, 19)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)


@contextmanager
def use_one_thread() -> Iterator[None]:
    """For layers this small a second thread only occupies a core that the engine could use."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(cores)
