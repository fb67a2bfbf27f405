"""Batcher: the rows of concurrent requests, run together. Knows no HTTP and no skill.

A row alone is bound by reading the weights; a batch of 32 costs about as much as a dozen rows. There is no timer. A row
alone is run at once. Where rows come in company, a run waits as long as each turn of the event loop brings more of them,
up to a full batch: so an idle service adds no wait, and a loaded one waits only for what has arrived already.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from serving.wire.problems import Refusal, invalid
from serving.wire.rows import all_finite

Array = np.ndarray
Run = Callable[..., Array]  # arrays of as many rows each -> an array of as many rows
MAX_ROWS = 64  # of one run: beyond about 32, a longer batch costs in proportion
RETRY_AFTER = 1  # s


@dataclass(frozen=True, slots=True)
class Waiting:
    inputs: tuple[Array, ...]
    rows: int
    outcome: asyncio.Future[Array]
    since: float


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run was, for whoever counts."""

    requests: int
    rows: int
    waited: float  # s, the longest of them
    seconds: float


class Batcher:
    """Short runs are made on the event loop, for a thread would cost more than they take. With `inline` false, and
    for a request that is more than a full batch, they are made on `threads`."""

    def __init__(
        self, run: Run, threads: Executor, inline: bool, max_waiting: int, observe: Callable[[Ran], None]
    ) -> None:
        self._run = run
        self._threads = threads
        self._inline = inline
        self._max_waiting = max_waiting
        self._observe = observe
        self._waiting: deque[Waiting] = deque()
        self._busy = False  # a flush is due, or a run of the queue is under way
        self._company = 1  # requests of the last run
        self._looked = 0  # requests that waited when the last turn was given to others
        self.rows = 0  # waiting

    def submit(self, *inputs: Array) -> asyncio.Future[Array]:
        """The rows of `run(*inputs)`. Refused with 503 while too many wait already."""
        loop = asyncio.get_running_loop()
        asked = Waiting(inputs, len(inputs[0]), loop.create_future(), perf_counter())
        if self.rows and self.rows + asked.rows > self._max_waiting:
            message = f"{self.rows} rows are waiting to be run; at most {self._max_waiting} may"
            raise Refusal(503, "overloaded", message, None, "the same, later", retry_after=RETRY_AFTER)
        self.rows += asked.rows
        if asked.rows > MAX_ROWS:
            self._on_a_thread([asked])
        else:
            self._waiting.append(asked)
            if not self._busy:
                self._busy = True
                loop.call_soon(self._flush)
        return asked.outcome

    def _flush(self) -> None:
        if self._more_may_come():
            asyncio.get_running_loop().call_soon(self._flush)
            return
        batch = self._next()
        self._busy = bool(batch)
        if not batch:
            return
        self._company = len(batch)
        if self._inline:
            self._settle(batch, *self._ran(batch))
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._on_a_thread(batch, self._flush)

    def _more_may_come(self) -> bool:
        here, before, self._looked = len(self._waiting), self._looked, len(self._waiting)
        if max(here, self._company) > 1 and before < here < MAX_ROWS:
            return True
        self._looked = 0
        return False

    def _next(self) -> list[Waiting]:
        """As many as fit one run, oldest first."""
        batch, rows = [], 0
        while self._waiting and rows + self._waiting[0].rows <= MAX_ROWS:
            batch.append(self._waiting.popleft())
            rows += batch[-1].rows
        return batch

    def _on_a_thread(self, batch: list[Waiting], then: Callable[[], None] | None = None) -> None:
        def done(ran: asyncio.Future[tuple[list[Array | Exception], float]]) -> None:
            self._settle(batch, *ran.result())
            if then:
                then()

        asyncio.get_running_loop().run_in_executor(self._threads, self._ran, batch).add_done_callback(done)

    def _ran(self, batch: list[Waiting]) -> tuple[list[Array | Exception], float]:
        """One outcome each. Where the common run fails, each is run alone, and answers for itself."""
        started = perf_counter()
        try:
            outcomes: list[Array | Exception] = list(_together(self._run, batch))
        except Exception as error:
            outcomes = [error] if len(batch) == 1 else [self._ran([asked])[0][0] for asked in batch]
        return outcomes, perf_counter() - started

    def _settle(self, batch: list[Waiting], outcomes: list[Array | Exception], seconds: float) -> None:
        rows = sum(asked.rows for asked in batch)
        self.rows -= rows
        ran = Ran(len(batch), rows, perf_counter() - batch[0].since - seconds, seconds)
        for asked, outcome in zip(batch, outcomes, strict=True):
            if asked.outcome.done():  # its client left meanwhile
                continue
            if isinstance(outcome, Exception):
                asked.outcome.set_exception(outcome)
            else:
                asked.outcome.set_result(outcome)
        asyncio.get_running_loop().call_soon(self._observe, ran)  # counted once these replies are on their way


def _together(run: Run, batch: list[Waiting]) -> list[Array]:
    if len(batch) == 1:
        return [checked(run(*batch[0].inputs))]
    columns = zip(*(asked.inputs for asked in batch), strict=True)
    output = checked(run(*(np.concatenate(column) for column in columns)))
    parts, start = [], 0
    for asked in batch:
        parts.append(output[start : start + asked.rows])
        start += asked.rows
    return parts


def checked(output: Array) -> Array:
    """Finite numbers can be so far out that a graph overflows; no client is to steer a body by what comes of it."""
    if not all_finite(output):
        raise invalid("not_finite", "the skill's answer overflows: some input is far out of any character's reach")
    return output
