"""The end of a process, and its replacement, while clients go on asking: nothing is lost."""

import json
import os
import signal
import socket
import time

import pytest

from serving.server.connection_limits import CLOSING_DELAY
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, hear, heard, request, running, shares
from tests.serving.test_operation import Load

ACT = request(
    "/act",
    json.dumps({"state": state_rows(1)[0].tolist(), "z": skill_rows(1)[0].tolist()}).encode(),
)


def until(true, seconds=180):
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < seconds
        time.sleep(0.02)


def refused(address):
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def asked_at_the_end(root, drain):
    """The answers to two connections that ask once their process listens no more; none where a busy
    machine let them ask too late."""
    with (
        running(root, drain=drain) as live,
        connected(live.address) as fresh,
        connected(live.address) as idle,
    ):
        idle.sendall(ACT)
        assert "connection" not in hear(idle).headers
        os.kill(live.pid, signal.SIGTERM)
        listened = time.monotonic()
        while not refused(live.address):
            listened = time.monotonic()
            time.sleep(0.02)
        for line in (fresh, idle):
            line.sendall(ACT)
        late = time.monotonic() - listened > CLOSING_DELAY
        return [] if late else [heard(line) for line in (fresh, idle)]


@pytest.mark.parametrize("drain", [0.0, 0.3])
def test_idle_connection_is_answered_during_worker_shutdown(standing, drain):
    trials = (asked_at_the_end(standing.root, drain) for _ in range(5))
    for answer in next(answers for answers in trials if answers):
        assert answer is not None, "the server closed the connection"
        assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_silent_connections_do_not_keep_a_process(standing):
    with running(standing.root) as live, connected(live.address), connected(live.address) as idle:
        idle.sendall(ACT)
        assert hear(idle).status == 200
        started = time.monotonic()
        os.kill(live.pid, signal.SIGTERM)
        live.process.wait(timeout=20)
    assert time.monotonic() - started < 5  # uvicorn's own patience is 8 s


def test_worker_killed_during_a_liveness_check_is_replaced(standing):
    with running(standing.root, workers=2) as live:
        until(lambda: len(live.workers) == 2)
        before = live.workers
        os.kill(before[0], signal.SIGSTOP)
        time.sleep(1.2)  # it is asked twice a second whether it lives
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(live.workers) == 2 and before[0] not in live.workers, seconds=20)


class Hesitant(Load):
    """Clients that connect for each request, and ask a moment later: into the end of a worker, more
    often than not."""

    def _ask(self):
        while not self.ending.is_set():
            with connected(self.address) as line:
                time.sleep(0.05)
                try:
                    line.sendall(ACT)
                    answer = heard(line)
                except OSError as error:
                    answer = repr(error)
            if answer is None or isinstance(answer, str):
                self.lost.append(answer or "closed")
            else:
                self.answers.append((0.0, 0.0, answer))


@pytest.mark.parametrize("clients", [Load, Hesitant])
@pytest.mark.parametrize("restarts", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_restarts_of_a_worker_lose_nothing(standing, restarts, clients):
    with running(standing.root, workers=2, drain=0.3) as live, clients(live.address) as work:
        for _ in range(restarts):
            until(lambda: len(live.workers) == 2 and len(shares(live.address, 10)) == 2)
            oldest = live.workers[0]
            os.kill(oldest, signal.SIGTERM)
            until(lambda ended=oldest: ended not in live.workers)
    assert not work.lost
    assert {answer.status for _, _, answer in work.answers} == {200}


def test_sighup_replaces_all_workers_and_loses_nothing(standing):
    with running(standing.root, workers=2, drain=0.3) as live, Hesitant(live.address) as work:
        until(lambda: len(shares(live.address, 10)) == 2)
        before = set(live.workers)
        os.kill(live.pid, signal.SIGHUP)
        until(lambda: len(live.workers) == 2 and not before & set(live.workers))
    assert not work.lost
    assert {answer.status for _, _, answer in work.answers} == {200}


def test_sighup_reloads_a_single_process_without_lost_requests(standing):
    with running(standing.root, drain=0.3) as live, Hesitant(live.address) as work:
        for _ in range(3):
            before = shares(live.address, 1)
            os.kill(live.pid, signal.SIGHUP)
            until(lambda before=before: shares(live.address, 1) != before)
        assert live.process.poll() is None
    assert not work.lost
    assert {answer.status for _, _, answer in work.answers} == {200}
