"""Several worker processes on one port: all of them take connections, and one that takes none keeps
no client waiting."""

import os
import signal
import time
from contextlib import ExitStack

import pytest

from tests.serving.process import connected, hear, request, running, shares

HEALTH = request("/healthz", b"", method="GET")


@pytest.fixture
def two(standing):
    with running(standing.root, workers=2) as live:
        end = time.monotonic() + 60
        while len(shares(live.address, 10)) < 2:  # the second may still be starting
            assert time.monotonic() < end
        yield live


def test_many_connections_are_shared_by_all_workers(two):
    """The kernel shares them, and not evenly; over some rounds no worker is left without."""
    taken = sum((shares(two.address, 64) for _ in range(5)), start=shares(two.address, 1))
    assert len(taken) == 2
    assert min(taken.values()) > 32


def test_stopped_worker_does_not_delay_clients(two):
    stopped = two.workers[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with ExitStack() as held:
            for _ in range(20):
                line = held.enter_context(connected(two.address))
                line.sendall(HEALTH)
                assert hear(line).status == 200
        assert time.monotonic() - started < 5
    finally:
        os.kill(stopped, signal.SIGCONT)
