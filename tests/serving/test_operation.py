"""The service in operation: workers, hot swap under load, shutdown, TLS, logs, metrics."""

import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
from collections import Counter

import httpx
import numpy as np
import pytest

from skills_store.runtime.library import SkillLibrary
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, receive_or_none, request, running
from tests.tiny import publish_tiny

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
BODY = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()
ACT = request("/act", BODY)


class Load:
    """Clients that send requests all the time, and reconnect on `connection: close`."""

    def __init__(self, address, clients=4):
        self.address = address
        self.ending = threading.Event()
        self.responses = []
        self.lost = []
        self.threads = [threading.Thread(target=self._send_requests) for _ in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        until = time.monotonic() + 60
        while not self.responses and time.monotonic() < until:
            time.sleep(0.01)
        assert self.responses, self.lost
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join(timeout=20)

    def _send_requests(self):
        sock = connected(self.address)
        while not self.ending.is_set():
            started = time.monotonic()
            try:
                sock.sendall(ACT)
                response = receive_or_none(sock)
            except OSError as error:
                response = None
                self.lost.append(repr(error))
            if response is None:
                self.lost.append("closed")
                return
            self.responses.append((started, time.monotonic() - started, response))
            if response.headers.get("connection") == "close":
                sock.close()
                sock = connected(self.address)
        sock.close()


def test_moved_alias_is_live_within_2_s_without_mixed_replies(store):
    publish_tiny(store, seed=1)
    store.alias("humanoid", "prod", 1)
    expected = {
        store.resolve(f"humanoid@{n}").digest: SkillLibrary.open(store, f"humanoid@{n}").act(
            [STATE], [Z]
        )[0]
        for n in (1, 2)
    }
    with (
        running(store.root, skill="humanoid@prod", drain=0) as live,
        Load(live.address, clients=1) as load,
    ):
        for number in (2, 1, 2, 1, 2):
            time.sleep(0.3)
            store.alias("humanoid", "prod", number)
            moved = time.monotonic()
            digest = store.resolve("humanoid@prod").digest
            while load.responses[-1][2].headers["x-skill-digest"] != digest:
                assert time.monotonic() - moved < 2
                time.sleep(0.01)
    assert not load.lost
    seen = Counter()
    for _, _, response in load.responses:
        assert response.status == 200
        digest = response.headers["x-skill-digest"]
        np.testing.assert_array_equal(
            np.array(json.loads(response.body)["targets"], np.float32), expected[digest]
        )
        seen[digest] += 1
    assert len(seen) == 2


def test_sigterm_reports_draining_and_loses_no_request(shared):
    with running(shared.root, drain=5) as live, Load(live.address) as load:
        time.sleep(0.3)
        os.kill(live.pid, signal.SIGTERM)
        time.sleep(0.3)
        assert httpx.get(f"{live.url}/readyz").json()["code"] == "draining"
        assert httpx.get(f"{live.url}/v2/health/ready").status_code == 503
        assert httpx.get(f"{live.url}/healthz").status_code == 200
        load.ending.set()
    assert not load.lost
    assert {response.headers.get("connection") for _, _, response in load.responses} == {
        None,
        "close",
    }


def test_two_workers_share_port_and_metrics_and_survive_sigterm(shared):
    with running(shared.root, workers=2, drain=0.5) as live, Load(live.address) as load:
        until = time.monotonic() + 30
        while len(load.responses) < 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert len(live.workers) == 2
        os.kill(live.workers[0], signal.SIGTERM)
        time.sleep(2)
        load.ending.set()
        for thread in load.threads:
            thread.join()
        counted = sum(
            float(line.split()[-1])
            for line in httpx.get(f"{live.url}/metrics").text.splitlines()
            if line.startswith('repertoire_requests_total{route="/act"')
        )
    assert not load.lost
    assert {response.status for _, _, response in load.responses} == {200}
    assert counted == len(load.responses)


def test_metrics_count_requests_by_route_status_and_skill(service):
    service.post("/act", content=BODY)
    service.post("/act", content=b"{")
    lines = service.get("/metrics").text.splitlines()
    for expected in (
        'repertoire_requests_total{route="/act",status="200"}',
        'repertoire_requests_total{route="/act",status="422"}',
        'repertoire_batch_rows_count{skill="humanoid@1"}',
        'repertoire_queue_seconds_count{skill="humanoid@1"}',
        'repertoire_run_seconds_count{skill="humanoid@1"}',
        'repertoire_request_seconds_count{route="/act"}',
    ):
        assert any(line.startswith(expected) and float(line.split()[-1]) > 0 for line in lines), (
            expected
        )


def test_access_logs_are_json_lines_with_the_request_id(shared):
    with running(shared.root, access_log=True) as live:
        own = httpx.post(f"{live.url}/act", content=BODY, headers={"x-request-id": "mine-1"})
        httpx.get(f"{live.url}/nowhere", headers={"x-request-id": "bad id"})
        output = live.stop_and_read()
    assert own.headers["x-request-id"] == "mine-1"
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    [mine] = [line for line in lines if line.get("request_id") == "mine-1"]
    assert (mine["route"], mine["status"], mine["level"]) == ("/act", 200, "info")
    assert mine["ms"] > 0
    [other] = [line for line in lines if line.get("status") == 404]
    assert other["request_id"] != "bad id"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
@pytest.mark.parametrize("workers", [1, 2])
def test_service_over_tls(shared, tmp_path, workers):
    cert = tmp_path / "cert.pem"
    key = tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "1",
    ]
    options = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    with running(shared.root, tls_cert=cert, tls_key=key, workers=workers) as live:
        assert live.url.startswith("https://")
        with connected(live.address) as sock:  # without TLS
            sock.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            reply = b""
            with contextlib.suppress(ConnectionError):
                reply = sock.recv(1000)  # nothing, or a TLS alert
            assert not reply.startswith(b"HTTP")
        response = httpx.post(
            f"{live.url}/act",
            content=BODY,
            verify=ssl.create_default_context(cafile=str(cert)),
            timeout=60,  # two workers may still be starting
        )
        assert response.status_code == 200
