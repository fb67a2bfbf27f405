"""Processes that are stopped and replaced under load: no request is lost."""

import json
import os
import signal
import socket
import time

import pytest

from serving.server.connection_limits import CLOSING_DELAY
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import (
    connected,
    count_by_process,
    receive,
    receive_or_none,
    request,
    running,
)
from tests.serving.test_operation import Load

ACT = request(
    "/act",
    json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}).encode(),
)


def wait_until(condition, seconds=180):
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds
        time.sleep(0.02)


def refused(address):
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def request_during_shutdown(root, drain):
    """The responses on two connections that send a request once the process no longer listens; none
    where a busy machine made them late."""
    with (
        running(root, drain=drain) as live,
        connected(live.address) as fresh,
        connected(live.address) as idle,
    ):
        idle.sendall(ACT)
        assert "connection" not in receive(idle).headers
        os.kill(live.pid, signal.SIGTERM)
        listened = time.monotonic()
        while not refused(live.address):
            listened = time.monotonic()
            time.sleep(0.02)
        for sock in (fresh, idle):
            sock.sendall(ACT)
        late = time.monotonic() - listened > CLOSING_DELAY
        return [] if late else [receive_or_none(sock) for sock in (fresh, idle)]


@pytest.mark.parametrize("drain", [0.0, 0.3])
def test_idle_connection_is_answered_during_worker_shutdown(shared, drain):
    trials = (request_during_shutdown(shared.root, drain) for _ in range(5))
    responses = next((responses for responses in trials if responses), None)
    if responses is None:
        pytest.skip("the machine was too busy to send a request in time, five times")
    for response in responses:
        assert response is not None, "the server closed the connection"
        assert (response.status, response.headers["connection"]) == (200, "close")


def test_idle_connections_do_not_delay_shutdown(shared):
    with running(shared.root) as live, connected(live.address), connected(live.address) as idle:
        idle.sendall(ACT)
        assert receive(idle).status == 200
        started = time.monotonic()
        os.kill(live.pid, signal.SIGTERM)
        live.process.wait(timeout=20)
    assert time.monotonic() - started < 5  # uvicorn's own timeout is 8 s


def test_worker_killed_during_a_liveness_check_is_replaced(shared):
    with running(shared.root, workers=2) as live:
        wait_until(lambda: len(live.workers) == 2)
        before = live.workers
        os.kill(before[0], signal.SIGSTOP)
        time.sleep(1.2)  # the liveness check runs twice a second
        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(live.workers) == 2 and before[0] not in live.workers, seconds=20)


class SlowLoad(Load):
    """Clients that connect for each request and send it a moment later, so that many meet the end
    of a worker."""

    def _send_requests(self):
        while not self.ending.is_set():
            with connected(self.address) as sock:
                time.sleep(0.05)
                try:
                    sock.sendall(ACT)
                    response = receive_or_none(sock)
                except OSError as error:
                    response = repr(error)
            if response is None or isinstance(response, str):
                self.lost.append(response or "closed")
            else:
                self.responses.append((0.0, 0.0, response))


@pytest.mark.parametrize("clients", [Load, SlowLoad])
@pytest.mark.parametrize("restarts", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_restarts_of_a_worker_lose_nothing(shared, restarts, clients):
    with running(shared.root, workers=2, drain=0.3) as live, clients(live.address) as load:
        for _ in range(restarts):
            wait_until(
                lambda: len(live.workers) == 2 and len(count_by_process(live.address, 10)) == 2
            )
            oldest = live.workers[0]
            os.kill(oldest, signal.SIGTERM)
            wait_until(lambda ended=oldest: ended not in live.workers)
    assert not load.lost
    assert {response.status for _, _, response in load.responses} == {200}


def test_sighup_replaces_all_workers_and_loses_nothing(shared):
    with running(shared.root, workers=2, drain=0.3) as live, SlowLoad(live.address) as load:
        wait_until(lambda: len(count_by_process(live.address, 10)) == 2)
        before = set(live.workers)
        os.kill(live.pid, signal.SIGHUP)
        wait_until(lambda: len(live.workers) == 2 and not before & set(live.workers))
    assert not load.lost
    assert {response.status for _, _, response in load.responses} == {200}


def test_sighup_reloads_a_single_process_without_lost_requests(shared):
    with running(shared.root, drain=0.3) as live, SlowLoad(live.address) as load:
        for _ in range(3):
            before = count_by_process(live.address, 1)
            os.kill(live.pid, signal.SIGHUP)
            wait_until(lambda before=before: count_by_process(live.address, 1) != before)
        assert live.process.poll() is None
    assert not load.lost
    assert {response.status for _, _, response in load.responses} == {200}
