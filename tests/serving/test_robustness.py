"""Slow connections, floods and memory growth: each in a short form and a long one (`slow`)."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from benchmarks import load
from serving.access import keys
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, receive_or_none, request, running

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
BODY = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()
ACT = load.post("/act", BODY)


def steady(address, seconds):
    return load.closed(address, [ACT], 4, seconds)


def half_sent(address, count):
    """Connections that send a header and then nothing."""
    socks = [connected(address) for _ in range(count)]
    for sock in socks:
        sock.sendall(b"POST /act HTTP/1.1\r\nhost: x\r\nx-a: ")
    return socks


FLOOD = """
import json, sys
from benchmarks import load
host, port, connections, seconds, token, body = sys.argv[1:]
act = load.post("/act", body.encode(), {"authorization": f"Bearer {token}"})
print(json.dumps(load.closed((host, int(port)), [act], int(connections), float(seconds)).statuses))
"""


def flooded(address, connections, seconds, token):
    """A process that sends all that one key can on so many connections, and prints how many replies
    had each status."""
    command = [
        sys.executable,
        "-c",
        FLOOD,
        address[0],
        str(address[1]),
        str(connections),
        str(seconds),
        token,
    ]
    return subprocess.Popen([*command, BODY.decode()], stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("count", "seconds", "factor"),
    [(50, 0.5, None), pytest.param(500, 5, 2, marks=pytest.mark.slow)],
)
def test_slow_connections_do_not_slow_good_clients(shared, count, seconds, factor):
    with running(shared.root, request_timeout=20) as live:
        before = steady(live.address, seconds)
        socks = half_sent(live.address, count)
        during = steady(live.address, seconds)
        for sock in socks:
            sock.close()
    assert during.failed == 0
    assert set(during.statuses) == {200}
    assert factor is None or during.percentile(99) <= factor * before.percentile(99)


def act_beside_flood(shared, tmp_path, rate, connections, seconds):
    """The requests of one key beside a flood of another that is allowed `rate` requests a second,
    and how many replies to the flood had each status."""
    flood, flooding = keys.make_key("flood", ["act"], rate=rate)
    good, kept = keys.make_key("good", ["act"])
    keys.write(tmp_path / "keys.json", [flooding, kept])
    act = load.post("/act", BODY, {"authorization": f"Bearer {good}"})
    with (
        running(shared.root, keys=tmp_path / "keys.json") as live,
        flooded(live.address, connections, seconds + 3, flood) as process,
    ):
        time.sleep(2)
        during = load.closed(live.address, [act], 2, seconds)
        return during, json.loads(process.communicate()[0])


def test_flooding_key_gets_429_and_other_keys_are_served(shared, tmp_path):
    during, counts = act_beside_flood(shared, tmp_path, 200, connections=40, seconds=0.8)
    assert set(during.statuses) == {200}
    assert during.failed == 0
    assert set(counts) == {"200", "429"}
    # each refusal is delayed, which slows the flood
    assert counts["429"] < (200 + 40) * (0.8 + 4)


@pytest.mark.slow
def test_rate_of_a_flooding_key_bounds_the_wait_of_others(shared, tmp_path):
    limited, counts = act_beside_flood(shared, tmp_path, 200, connections=640, seconds=5)
    unlimited, _ = act_beside_flood(shared, tmp_path, 1e6, connections=640, seconds=5)
    assert set(limited.statuses) == {200}
    assert counts["429"] < (200 + 640) * (5 + 4)
    assert limited.percentile(99) < unlimited.percentile(99) / 4


def memory(pid):  # MiB
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


@pytest.mark.parametrize(
    ("seconds", "turns"),
    [(1.0, 4), pytest.param(60.0, 60, marks=pytest.mark.slow)],
    ids=["short", "an hour"],
)
def test_memory_does_not_grow(shared, seconds, turns):
    with running(shared.root) as live:
        mixed = [
            ACT,
            load.post("/act", b"{"),
            load.post("/act", BODY[:-1]),
            load.post("/encode", BODY),
        ]
        load.closed(live.address, mixed, 8, seconds)  # warm-up
        sent = [0]
        seen = [memory(live.pid)]
        for _ in range(turns):
            sent.append(sent[-1] + len(load.closed(live.address, mixed, 8, seconds).times))
            seen.append(memory(live.pid))
        files = len(os.listdir(f"/proc/{live.pid}/fd"))
    slope = np.polyfit(np.array(sent) / 100_000, seen, 1)[0]  # MiB per 100,000 requests
    assert seen[-1] - seen[0] < 8 if turns < 10 else slope <= 1
    assert files < 60


def test_cold_start_and_idle_memory(shared):
    started = time.monotonic()
    with running(shared.root) as live:
        assert httpx.get(f"{live.url}/readyz").status_code == 200
        took = time.monotonic() - started
        assert memory(live.pid) < 150
    assert took < 30  # benchmarks/serving.py measures the 1.5 s that are required


def test_concurrent_mixed_requests_get_their_usual_statuses(shared):
    requests = [
        request("/act", BODY),
        request("/act", BODY[:-1]),
        request("/act?way=long", BODY),
        request("/skills/humanoid", b"", method="GET"),
        request("/skills/nobody", b"", method="GET"),
    ]
    expected = [200, 422, 200, 200, 404]
    with running(shared.root) as live, ThreadPoolExecutor(20) as pool:

        def get_status(i):
            with connected(live.address) as sock:
                sock.sendall(requests[i % 5])
                response = receive_or_none(sock)
                return response.status if response else 0

        assert list(pool.map(get_status, range(300))) == expected * 60
