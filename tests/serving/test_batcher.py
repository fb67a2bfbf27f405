"""Concurrent requests are run together, get each its own rows, and answer each for itself."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from serving.models.batcher import MAX_ROWS, Batcher
from serving.wire.problems import Refusal

THREADS = ThreadPoolExecutor(2)


def batcher(run=lambda x: x * 2, inline=True, max_waiting=4096):
    record = []
    return Batcher(run, THREADS, inline, max_waiting, record.append), record


def rows(count, value):
    return np.full((count, 3), value, np.float32)


@pytest.mark.parametrize("inline", [True, False])
def test_concurrent_requests_share_one_batch_with_own_results(inline):
    async def ask():
        made, record = batcher(inline=inline)
        answers = await asyncio.gather(*(made.submit(rows(1 + i % 3, i)) for i in range(20)))
        return answers, record, made.rows

    answers, record, waiting = asyncio.run(ask())
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, rows(1 + i % 3, 2 * i))
    assert [one.requests for one in record] == [20]
    assert waiting == 0


def test_single_request_runs_without_batching_delay():
    async def ask():
        made, record = batcher()
        await made.submit(rows(1, 0))
        await made.submit(rows(1, 1))
        return record

    record = asyncio.run(ask())
    assert [one.rows for one in record] == [1, 1]
    assert max(one.waited for one in record) < 0.05


def test_batches_respect_max_rows_and_include_every_request():
    async def ask():
        made, record = batcher()
        await asyncio.gather(*(made.submit(rows(7, i)) for i in range(40)))
        return record

    record = asyncio.run(ask())
    assert max(one.rows for one in record) <= MAX_ROWS
    assert sum(one.requests for one in record) == 40


def test_oversized_request_runs_off_the_event_loop():
    import threading

    places = []

    def run(x):
        places.append(threading.current_thread().name)
        return x

    async def ask():
        made, _ = batcher(run)
        return await made.submit(rows(MAX_ROWS + 1, 1))

    assert len(asyncio.run(ask())) == MAX_ROWS + 1
    assert places != [threading.main_thread().name]


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_result_fails_only_its_own_request(inline, bad):
    async def ask():
        made, _ = batcher(inline=inline)
        request = [made.submit(rows(1, bad if i == 3 else i)) for i in range(8)]
        return await asyncio.gather(*request, return_exceptions=True)

    answers = asyncio.run(ask())
    assert isinstance(answers[3], Refusal)
    assert answers[3].problem.code == "not_finite"
    assert all(isinstance(answer, np.ndarray) for i, answer in enumerate(answers) if i != 3)


def test_single_failing_request_runs_once():
    runs = []

    def run(x):
        runs.append(len(x))
        raise RuntimeError("the graph fails")

    async def ask():
        made, _ = batcher(run)
        with pytest.raises(RuntimeError, match="the graph fails"):
            await made.submit(rows(1, 1))

    asyncio.run(ask())
    assert runs == [1]


def test_full_queue_is_refused_with_503_and_retry_after():
    async def ask():
        made, _ = batcher(max_waiting=4)
        request = [made.submit(rows(1, i)) for i in range(4)]
        with pytest.raises(Refusal) as refused:
            made.submit(rows(1, 9))
        await asyncio.gather(*request)
        await made.submit(rows(1, 9))  # and once they are answered, there is room again
        return refused.value

    refused = asyncio.run(ask())
    assert (refused.status, refused.problem.code, refused.retry_after) == (503, "overloaded", 1)


def test_cancelled_request_does_not_affect_the_others():
    async def ask():
        made, _ = batcher()
        request = [made.submit(rows(1, i)) for i in range(3)]
        request[1].cancel()
        return await asyncio.gather(*request, return_exceptions=True)

    first, gone, last = asyncio.run(ask())
    assert isinstance(gone, asyncio.CancelledError)
    np.testing.assert_array_equal(first, rows(1, 0))
    np.testing.assert_array_equal(last, rows(1, 4))
