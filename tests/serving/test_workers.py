"""Worker processes on one port: all accept connections, and a stopped one delays no client."""

import os
import signal
import time
from contextlib import ExitStack

import pytest

from tests.serving.process import connected, count_by_process, receive, request, running

HEALTH = request("/healthz", b"", method="GET")


@pytest.fixture
def two_workers(shared):
    with running(shared.root, workers=2) as live:
        end = time.monotonic() + 60
        while len(count_by_process(live.address, 10)) < 2:  # the second may still be starting
            assert time.monotonic() < end
        yield live


def test_many_connections_are_shared_by_all_workers(two_workers):
    """The kernel distributes them unevenly; over several rounds each worker gets some."""
    taken = sum(
        (count_by_process(two_workers.address, 64) for _ in range(5)),
        start=count_by_process(two_workers.address, 1),
    )
    assert len(taken) == 2
    assert min(taken.values()) > 32


def test_stopped_worker_does_not_delay_clients(two_workers):
    stopped = two_workers.workers[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with ExitStack() as stack:
            for _ in range(20):
                sock = stack.enter_context(connected(two_workers.address))
                sock.sendall(HEALTH)
                assert receive(sock).status == 200
        assert time.monotonic() - started < 5
    finally:
        os.kill(stopped, signal.SIGCONT)
