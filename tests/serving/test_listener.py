"""Connections are shared out evenly over workers, and nobody waits for a worker that does not take any."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from serving.listener import Crowd
from tests.serving.process import connected, hear, request, running, shares

HEALTH = request("/healthz", b"", method="GET")
HOLD = "import sys; from pathlib import Path; from serving.listener import Crowd; "
HOLD += "crowd = Crowd(Path(sys.argv[1])); crowd.say(int(sys.argv[2])); print('there', flush=True); sys.stdin.read()"


def other(path, connections):
    """A worker of another process."""
    command = [sys.executable, "-c", HOLD, str(path), str(connections)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    return process


def test_each_process_sees_what_the_others_have(tmp_path):
    Crowd.make(tmp_path / "crowd", workers=2)
    mine = Crowd(tmp_path / "crowd")
    mine.say(0)
    assert mine.least() is None
    with other(tmp_path / "crowd", 5) as five, other(tmp_path / "crowd", 3) as three:
        assert mine.least() == 3
        three.kill()
        three.wait()
        with other(tmp_path / "crowd", 7) as gone:  # in the place of the killed one
            assert mine.least() == 5
            gone.kill()
        five.kill()
        five.wait()
    with other(tmp_path / "crowd", 9) as nine:  # the count of one that was killed is in another place
        assert mine.least() == 9
        nine.kill()
    mine.close()


@pytest.fixture
def two(standing):
    with running(standing.root, workers=2) as live:
        end = time.monotonic() + 60
        while len(shares(live.address, 10)) < 2:  # the second may still be starting
            assert time.monotonic() < end
        yield live


def test_connections_that_stay_are_split_evenly(two):
    assert max(shares(two.address, 40).values()) <= 22


def test_a_worker_that_takes_none_keeps_nobody_waiting(two):
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
