"""Two cores for a loop: what the engine leaves of the second one is for rewards and for learners that nobody waits for."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial

import torch
from torch import Generator, Tensor

from pretrain.rl.learner import Learner, Scalars
from pretrain.rl.rollout import Batch, Rollout

Call = Callable[[Rollout], Tensor]
Asked = dict[str, tuple[Callable[[], Tensor], Future[Tensor]]]

PATIENCE = 10  # niceness of the learners: the engine comes first, they have the gaps around it


class Background:
    """Work beside the loop: rewards, and learners that are fitted while the next rollout is collected, which needs the policy
    alone.

    Nobody may look at what they learn between `begin` and `finish`. Layers this small gain little from a second thread, two
    networks on one thread each do; and the bits are the same on one core as on many: on Intel's processors a product that
    two threads share is rounded otherwise.
    """

    def __init__(self) -> None:
        self._prompt = ThreadPoolExecutor(1, "rewards", torch.set_num_threads, (1,))
        self._patient = ThreadPoolExecutor(1, "learners", _be_patient)
        self._fits: list[Future[Scalars]] = []
        self.learned: Scalars = {}  # metrics that nobody has asked for yet

    def ask(self, calls: Mapping[str, Call], rollout: Rollout) -> Asked:
        """Each of `calls` of the rollout, one after the other."""
        return {name: (partial(call, rollout), self._prompt.submit(call, rollout)) for name, call in calls.items()}

    def answers(self, asked: Asked) -> dict[str, Tensor]:
        """What they came to. Whoever waits for it takes the last upon itself, where nobody has begun them."""
        here = {name: call() for name, (call, there) in reversed(asked.items()) if there.cancel()}
        return {name: here[name] if name in here else there.result() for name, (_, there) in asked.items()}

    def begin(self, learners: Sequence[Learner], batch: Batch, seeds: Sequence[int]) -> None:
        """One learner after the other, each with random numbers of its own."""
        assert not self._fits, "what has begun is finished first"
        self._fits = [
            self._patient.submit(learner.fit, batch, Generator().manual_seed(seed))
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
