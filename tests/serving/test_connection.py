"""Requests as bytes on a socket: split, chunked, pipelined, slow, too large or malformed."""

import json
import socket
import time
from select import select

import httpx
import numpy as np
import pytest
from websockets.exceptions import InvalidMessage
from websockets.sync.client import connect

from serving.server.connection_limits import MAX_HEAD
from skills_store.runtime.library import SkillLibrary
from tests.serving.local import skill_rows, state_rows
from tests.serving.process import connected, exchange, receive, receive_or_none, request, running

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
BODY = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()


@pytest.fixture(scope="module")
def live(shared):
    with running(
        shared.root, max_body=200_000, request_timeout=0.5, keep_alive=1, max_connections=60
    ) as service:
        yield service


@pytest.fixture
def sock(live):
    with connected(live.address) as sock:
        yield sock


def test_chunked_split_and_expect_100_bodies_are_read_whole(sock, shared):
    expected = SkillLibrary.open(shared, "humanoid").act([STATE], [Z])[0]
    chunked = b"POST /act HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    chunked += (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:100], BODY[100:]))
        + b"0\r\n\r\n"
    )
    responses = [exchange(sock, chunked)]
    whole = request("/act", BODY)
    send_in_parts(sock, [whole[i : i + 300] for i in range(0, len(whole), 300)])
    responses.append(receive(sock))
    sock.sendall(
        request("/act", b"", "expect: 100-continue").replace(
            b"length: 0", b"length: %d" % len(BODY)
        )
    )
    assert sock.recv(100).startswith(b"HTTP/1.1 100")
    responses.append(exchange(sock, BODY))
    for response in responses:
        np.testing.assert_array_equal(
            np.array(json.loads(response.body)["targets"], np.float32), expected
        )


def test_pipelined_requests_are_answered_in_their_order(sock):
    sock.sendall(
        request("/act", BODY) + request("/healthz", b"", method="GET") + request("/act", b"{") * 2
    )
    assert [int(status.split()[1]) for status in replies(sock, 4)] == [200, 200, 422, 422]


def test_request_bytes_inside_a_header_or_body_are_not_parsed(sock):
    """Bytes of a request in the middle of a header or a body are part of it."""
    inner = request("/act", BODY)
    assert exchange(sock, inner).status == 200
    sock.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-value: ")
    time.sleep(0.05)
    assert json.loads(exchange(sock, inner).body) == {"status": "ok"}

    with socket.create_connection(sock.getpeername()) as other:
        other.sendall(
            b"POST /act HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(inner)
        )
        time.sleep(0.05)
        response = exchange(other, inner)
        assert (response.status, json.loads(response.body)["code"]) == (422, "not_json")
        assert exchange(other, inner).status == 200


def test_empty_lines_before_a_request_change_nothing(sock):
    assert exchange(sock, b"\r\n\r\n" + request("/act", BODY)).status == 200
    assert exchange(sock, b"\r\n\r\n" + request("/healthz", b"", method="GET")).status == 200


def test_body_without_a_head_is_not_served(live):
    """Such bytes get no other reply than 400, also after a valid request on another connection."""
    for _ in range(3):
        with connected(live.address) as first:
            assert exchange(first, b"\r\n\r\n" + request("/act", BODY)).status == 200
        with connected(live.address) as second:
            second.sendall(b"\r\n\r\n" + BODY)
            response = receive_or_none(second)
            assert response is None or response.status == 400


def replies(sock: socket.socket, count: int) -> list[bytes]:
    """The status lines of the next `count` responses."""
    file = sock.makefile("rb")
    statuses = []
    for _ in range(count):
        statuses.append(file.readline())
        length = 0
        while (header := file.readline()) != b"\r\n":
            if header.lower().startswith(b"content-length"):
                length = int(header.split(b":")[1])
        file.read(length)
    return statuses


def test_keep_alive_and_connection_close_are_honoured(sock):
    for _ in range(3):
        assert exchange(sock, request("/act", BODY)).status == 200
    response = exchange(sock, request("/act", BODY, "connection: close"))
    assert response.headers["connection"] == "close"
    assert receive_or_none(sock) is None


def test_connection_resets_do_not_affect_other_clients(live):
    for _ in range(20):
        with connected(live.address) as sock:
            sock.sendall(request("/act", BODY))
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )  # closing sends a reset
    assert httpx.post(f"{live.url}/act", content=BODY).status_code == 200


SLOW = {
    "part of the first line": b"POST /act HT",
    "part of the head": b"POST /act HTTP/1.1\r\nhost: localhost\r\n",
    "/act": request("/act", BODY)[:-5],
    "/act in chunks": b"POST /act HTTP/1.1\r\nhost: localhost\r\n"
    b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "/interpolate": request("/interpolate", BODY)[:-5],
    "/encode": request("/encode", BODY, "content-type: application/octet-stream")[:-5],
    "compressed": request("/act", BODY, "content-encoding: gzip")[:-5],
}


def send_in_parts(sock: socket.socket, parts: list[bytes]) -> None:
    for part in parts:
        sock.sendall(part)
        time.sleep(0.02)


def assert_refused_as_slow(sock: socket.socket, started: float) -> None:
    """The next reply is a 408, neither early nor late, and the connection ends."""
    response = receive(sock)
    assert 0.3 < time.monotonic() - started < 5
    assert (response.status, json.loads(response.body)["code"]) == (408, "request_timeout")
    assert response.headers["content-type"] == "application/json"
    assert response.headers["connection"] == "close"
    assert receive_or_none(sock) is None


@pytest.mark.parametrize("part", SLOW.values(), ids=SLOW)
def test_request_that_does_not_arrive_in_time_gets_408(sock, part):
    started = time.monotonic()
    sock.sendall(part)
    assert_refused_as_slow(sock, started)


@pytest.mark.parametrize("at_once", [0, 200], ids=["head", "body"])
def test_request_that_arrives_byte_by_byte_gets_408(sock, at_once):
    """Each byte soon after the one before it, and all of them too late."""
    sent = request("/act", BODY)
    sock.sendall(sent[:at_once])
    started = time.monotonic()
    for i in range(at_once, len(sent)):
        if select([sock], [], [], 0.02)[0]:
            break
        sock.sendall(sent[i : i + 1])
    assert_refused_as_slow(sock, started)


def test_request_timeout_starts_anew_for_each_request(sock):
    for _ in range(2):
        assert exchange(sock, request("/act", BODY)).status == 200
        time.sleep(0.7)  # idle, which is no slow request
    started = time.monotonic()
    sock.sendall(request("/act", BODY)[:-5])
    assert_refused_as_slow(sock, started)


def test_a_slow_body_after_its_refusal_ends_the_connection(sock):
    """A request refused by its head gets its reply at once, and the rest of it is not awaited."""
    started = time.monotonic()
    sock.sendall(request("/nowhere", BODY)[:-5])
    assert receive_or_none(sock) is not None
    assert receive_or_none(sock) is None
    assert time.monotonic() - started < 5


def test_a_connection_without_a_request_is_closed_without_a_reply(sock):
    started = time.monotonic()
    assert receive_or_none(sock) is None
    assert 0.8 < time.monotonic() - started < 5  # `keep_alive`, not the time of a request


def test_session_outlasts_the_request_timeout(live):
    with connect(f"{live.url.replace('http', 'ws')}/session") as socket:
        time.sleep(0.8)
        socket.send(json.dumps({"z": Z.tolist()}))
        assert "skill" in json.loads(socket.recv(timeout=10))


def test_an_oversized_body_is_refused_before_it_is_read(sock):
    head = request("/act", b"").replace(b"length: 0", b"length: 200001")
    response = exchange(sock, head)  # and not a byte of the body
    assert (response.status, json.loads(response.body)["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(("path", "body"), [("/act", BODY), ("/interpolate", b"{}")])
def test_oversized_head_returns_431_and_closes(sock, path, body):
    fits = request(path, body, f"x-note: {'n' * (MAX_HEAD - 200)}")
    assert exchange(sock, fits).status in (200, 422)
    response = exchange(sock, request(path, body, f"x-note: {'n' * MAX_HEAD}"))
    assert (response.status, json.loads(response.body)["code"]) == (431, "head_too_large")
    assert response.headers["connection"] == "close"


def test_endless_head_closes_the_connection(sock):
    started = time.monotonic()
    sock.sendall(b"GET /healthz HTTP/1.1\r\nx-note: ")
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        send_in_parts(sock, [b"n" * MAX_HEAD] * 10)
    assert time.monotonic() - started < 0.4  # before the time of a request is over


def test_requests_over_the_connection_limit_get_retry_after(live):
    time.sleep(0.7)  # the connections of earlier tests are closed by then
    socks = [connected(live.address) for _ in range(70)]
    time.sleep(0.2)
    last = exchange(socks[-1], request("/act", BODY))
    assert (last.status, last.headers["retry-after"]) == (503, "1")
    assert json.loads(last.body)["code"] == "overloaded"
    assert exchange(socks[0], request("/act", BODY)).status == 200
    with pytest.raises((InvalidMessage, OSError)):
        connect(
            f"ws://localhost:{live.address[1]}/session",
            sock=connected(live.address),
            open_timeout=10,
        )
    for one in socks:
        one.close()


def test_invalid_bytes_get_4xx_and_later_connections_are_served(live):
    for data in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"POST /act HTTP/9.9\r\n\r\n",
        b"\0" * 1000,
    ):
        with connected(live.address) as sock:
            sock.sendall(data)
            response = receive_or_none(sock)
            assert response is None or 400 <= response.status < 500
    assert httpx.get(f"{live.url}/readyz").status_code == 200
