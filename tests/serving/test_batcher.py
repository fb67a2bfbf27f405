"""Concurrent requests run in one batch; each gets its own rows or its own error."""

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
    async def submit_all():
        made, record = batcher(inline=inline)
        results = await asyncio.gather(*(made.submit(rows(1 + i % 3, i)) for i in range(20)))
        return results, record, made.rows

    results, record, waiting = asyncio.run(submit_all())
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, rows(1 + i % 3, 2 * i))
    assert [one.requests for one in record] == [20]
    assert waiting == 0


def test_single_request_runs_without_batching_delay():
    async def submit_all():
        made, record = batcher()
        await made.submit(rows(1, 0))
        await made.submit(rows(1, 1))
        return record

    record = asyncio.run(submit_all())
    assert [one.rows for one in record] == [1, 1]
    assert max(one.waited for one in record) < 0.05


def test_batches_respect_max_rows_and_include_every_request():
    async def submit_all():
        made, record = batcher()
        await asyncio.gather(*(made.submit(rows(7, i)) for i in range(40)))
        return record

    record = asyncio.run(submit_all())
    assert max(one.rows for one in record) <= MAX_ROWS
    assert sum(one.requests for one in record) == 40


def test_oversized_request_runs_off_the_event_loop():
    import threading

    threads = []

    def run(x):
        threads.append(threading.current_thread().name)
        return x

    async def submit_all():
        made, _ = batcher(run)
        return await made.submit(rows(MAX_ROWS + 1, 1))

    assert len(asyncio.run(submit_all())) == MAX_ROWS + 1
    assert threads != [threading.main_thread().name]


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nonfinite_result_fails_only_its_own_request(inline, bad):
    async def submit_all():
        made, _ = batcher(inline=inline)
        request = [made.submit(rows(1, bad if i == 3 else i)) for i in range(8)]
        return await asyncio.gather(*request, return_exceptions=True)

    results = asyncio.run(submit_all())
    assert isinstance(results[3], Refusal)
    assert results[3].problem.code == "not_finite"
    assert all(isinstance(result, np.ndarray) for i, result in enumerate(results) if i != 3)


def test_single_failing_request_runs_once():
    runs = []

    def run(x):
        runs.append(len(x))
        raise RuntimeError("the graph fails")

    async def submit_all():
        made, _ = batcher(run)
        with pytest.raises(RuntimeError, match="the graph fails"):
            await made.submit(rows(1, 1))

    asyncio.run(submit_all())
    assert runs == [1]


def test_full_queue_is_refused_with_503_and_retry_after():
    async def submit_all():
        made, _ = batcher(max_waiting=4)
        request = [made.submit(rows(1, i)) for i in range(4)]
        with pytest.raises(Refusal) as refused:
            made.submit(rows(1, 9))
        await asyncio.gather(*request)
        await made.submit(rows(1, 9))  # and then there is room again
        return refused.value

    refused = asyncio.run(submit_all())
    assert (refused.status, refused.problem.code, refused.retry_after) == (503, "overloaded", 1)


def test_cancelled_request_does_not_affect_the_others():
    async def submit_all():
        made, _ = batcher()
        request = [made.submit(rows(1, i)) for i in range(3)]
        request[1].cancel()
        return await asyncio.gather(*request, return_exceptions=True)

    first, cancelled, last = asyncio.run(submit_all())
    assert isinstance(cancelled, asyncio.CancelledError)
    np.testing.assert_array_equal(first, rows(1, 0))
    np.testing.assert_array_equal(last, rows(1, 4))
