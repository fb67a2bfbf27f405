"""Batcher: the rows of concurrent requests, run together. Independent of HTTP and skills.

A single row is bound by reading the weights; a batch of 32 costs about as much as a dozen rows.
There is no timer. A request alone runs at once. If several arrive, or the last batch had several, a
run waits while each turn of the event loop adds requests, up to a full batch: an idle service adds
no delay, and a loaded one waits only for what has already arrived."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from serving.wire.problems import Refusal
from serving.wire.rows import require_finite

Array = np.ndarray
Run = Callable[..., Array]  # arrays of as many rows each -> an array of as many rows
MAX_ROWS = 64  # of one run: beyond about 32, cost grows in proportion
RETRY_AFTER = 1  # s


@dataclass(frozen=True, slots=True)
class PendingRequest:
    inputs: tuple[Array, ...]
    rows: int
    outcome: asyncio.Future[Array]
    since: float


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The size and duration of one run, for the metrics."""

    requests: int
    rows: int
    waited: float  # s, the longest of them
    seconds: float


class Batcher:
    """Short runs happen on the event loop, because a thread would cost more than they do. If
    `inline` is false, or a request is larger than a full batch, they happen on `threads`."""

    def __init__(
        self,
        run: Run,
        threads: Executor,
        inline: bool,
        max_waiting: int,
        observe: Callable[[RunRecord], None],
    ) -> None:
        self._run = run
        self._threads = threads
        self._inline = inline
        self._max_waiting = max_waiting
        self._observe = observe
        self._waiting: deque[PendingRequest] = deque()
        self._busy = False  # a flush is due, or a run of the queue is under way
        self._last_batch_requests = 1  # requests of the last run
        self._last_queue_length = 0  # queue length when `_flush` last waited, else 0
        self.rows = 0  # waiting

    def submit(self, *inputs: Array) -> asyncio.Future[Array]:
        """A future of the rows (B, ...) of `run(*inputs)`, for inputs (B, width) each. Raises
        Refusal, status 503, if too many rows wait already."""
        loop = asyncio.get_running_loop()
        request = PendingRequest(inputs, len(inputs[0]), loop.create_future(), perf_counter())
        if self.rows and self.rows + request.rows > self._max_waiting:
            message = f"{self.rows} rows are waiting to be run; at most {self._max_waiting} may"
            raise Refusal(
                503, "overloaded", message, None, "the same, later", retry_after=RETRY_AFTER
            )
        self.rows += request.rows
        if request.rows > MAX_ROWS:
            self._run_on_thread([request])
        else:
            self._waiting.append(request)
            if not self._busy:
                self._busy = True
                loop.call_soon(self._flush)
        return request.outcome

    def _flush(self) -> None:
        if self._update_wait():
            asyncio.get_running_loop().call_soon(self._flush)
            return
        batch = self._next()
        self._busy = bool(batch)
        if not batch:
            return
        self._last_batch_requests = len(batch)
        if self._inline:
            self._resolve(batch, *self._run_batch(batch))
            asyncio.get_running_loop().call_soon(self._flush)
        else:
            self._run_on_thread(batch, self._flush)

    def _update_wait(self) -> bool:
        """Whether to wait for more requests: while their number grows, to at most MAX_ROWS. Keeps
        the queue length for the next turn of the event loop."""
        queue_length = len(self._waiting)
        grows = self._last_queue_length < queue_length < MAX_ROWS
        waits = grows and max(queue_length, self._last_batch_requests) > 1
        self._last_queue_length = queue_length if waits else 0
        return waits

    def _next(self) -> list[PendingRequest]:
        """As many as fit one run, oldest first."""
        batch = []
        rows = 0
        while self._waiting and rows + self._waiting[0].rows <= MAX_ROWS:
            batch.append(self._waiting.popleft())
            rows += batch[-1].rows
        return batch

    def _run_on_thread(
        self, batch: list[PendingRequest], on_done: Callable[[], None] | None = None
    ) -> None:
        def done(record: asyncio.Future[tuple[list[Array | Exception], float]]) -> None:
            self._resolve(batch, *record.result())
            if on_done:
                on_done()

        asyncio.get_running_loop().run_in_executor(
            self._threads, self._run_batch, batch
        ).add_done_callback(done)

    def _run_batch(self, batch: list[PendingRequest]) -> tuple[list[Array | Exception], float]:
        """One outcome per request, and the seconds of the batch. If the joint run fails, each
        request runs alone, so that one request's error does not fail the others."""
        started = perf_counter()
        outcomes: list[Array | Exception] = []
        try:
            outcomes += run_together(self._run, batch)
        except Exception as error:
            alone = len(batch) == 1
            outcomes += [error] if alone else [self._run_alone(request) for request in batch]
        return outcomes, perf_counter() - started

    def _run_alone(self, request: PendingRequest) -> Array | Exception:
        try:
            return run_together(self._run, [request])[0]
        except Exception as error:
            return error

    def _resolve(
        self, batch: list[PendingRequest], outcomes: list[Array | Exception], seconds: float
    ) -> None:
        rows = sum(request.rows for request in batch)
        self.rows -= rows
        record = RunRecord(len(batch), rows, perf_counter() - batch[0].since - seconds, seconds)
        for request, outcome in zip(batch, outcomes, strict=True):
            if request.outcome.done():  # its client left meanwhile
                continue
            if isinstance(outcome, Exception):
                request.outcome.set_exception(outcome)
            else:
                request.outcome.set_result(outcome)
        # after the replies, so that metrics do not delay them
        asyncio.get_running_loop().call_soon(self._observe, record)


def run_together(run: Run, batch: list[PendingRequest]) -> list[Array]:
    if len(batch) == 1:
        return [require_finite(run(*batch[0].inputs))]
    columns = zip(*(request.inputs for request in batch), strict=True)
    output = require_finite(run(*(np.concatenate(column) for column in columns)))
    parts = []
    start = 0
    for request in batch:
        parts.append(output[start : start + request.rows])
        start += request.rows
    return parts
