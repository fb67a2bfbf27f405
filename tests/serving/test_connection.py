"""Requests as bytes on a socket: split, chunked, pipelined, slow, too large, and what is no request
at all."""

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
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import connected, exchange, hear, heard, request, running

STATE = state_rows(1)[0]
Z = skill_rows(1)[0]
ASK = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()
DECIDE = json.dumps({"state": STATE.tolist(), "goal": goal_rows(1)[0].tolist()}).encode()
RAW = STATE.tobytes() + Z.tobytes()
TENSORS = "x-tensors: state=69,z=8"


@pytest.fixture(scope="module")
def live(standing):
    with running(
        standing.root, max_body=200_000, request_timeout=0.5, keep_alive=1, max_connections=60
    ) as service:
        yield service


@pytest.fixture
def line(live):
    with connected(live.address) as line:
        yield line


def test_chunked_split_and_expect_100_bodies_are_read_whole(line, standing):
    wanted = SkillLibrary.open(standing, "humanoid").act([STATE], [Z])[0]
    chunked = b"POST /act HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    chunked += (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (ASK[:100], ASK[100:]))
        + b"0\r\n\r\n"
    )
    answers = [exchange(line, chunked)]
    whole = request("/act", ASK)
    send_in_parts(line, [whole[i : i + 300] for i in range(0, len(whole), 300)])
    answers.append(hear(line))
    line.sendall(
        request("/act", b"", "expect: 100-continue").replace(b"length: 0", b"length: %d" % len(ASK))
    )
    assert line.recv(100).startswith(b"HTTP/1.1 100")
    answers.append(exchange(line, ASK))
    for answer in answers:
        np.testing.assert_array_equal(
            np.array(json.loads(answer.body)["targets"], np.float32), wanted
        )


def test_pipelined_requests_are_answered_in_their_order(line):
    line.sendall(
        request("/act", ASK) + request("/healthz", b"", method="GET") + request("/act", b"{") * 2
    )
    assert [int(status.split()[1]) for status in replies(line, 4)] == [200, 200, 422, 422]


def test_request_bytes_inside_a_header_or_body_are_not_parsed(line):
    """What looks like a request is a header's value or a body where it arrives in the middle of
    one."""
    inner = request("/act", ASK)
    assert exchange(line, inner).status == 200
    line.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-value: ")
    time.sleep(0.05)
    assert json.loads(exchange(line, inner).body) == {"status": "ok"}

    with socket.create_connection(line.getpeername()) as other:
        other.sendall(
            b"POST /act HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(inner)
        )
        time.sleep(0.05)
        answer = exchange(other, inner)
        assert (answer.status, json.loads(answer.body)["code"]) == (422, "not_json")
        assert exchange(other, inner).status == 200


def test_empty_lines_before_a_request_change_nothing(line):
    assert exchange(line, b"\r\n\r\n" + request("/act", ASK)).status == 200
    assert exchange(line, b"\r\n\r\n" + request("/healthz", b"", method="GET")).status == 200


def test_a_body_without_a_head_is_no_request(live):
    """Bytes that no parser made a request of are never answered, whatever was answered before
    them."""
    for _ in range(3):
        with connected(live.address) as first:
            assert exchange(first, b"\r\n\r\n" + request("/act", ASK)).status == 200
        with connected(live.address) as second:
            second.sendall(b"\r\n\r\n" + ASK)
            answer = heard(second)
            assert answer is None or answer.status == 400


def replies(line: socket.socket, count: int) -> list[bytes]:
    """The status lines of so many answers, whatever arrives together."""
    file = line.makefile("rb")
    statuses = []
    for _ in range(count):
        statuses.append(file.readline())
        length = 0
        while (header := file.readline()) != b"\r\n":
            if header.lower().startswith(b"content-length"):
                length = int(header.split(b":")[1])
        file.read(length)
    return statuses


def test_keep_alive_and_connection_close_are_honoured(line):
    for _ in range(3):
        assert exchange(line, request("/act", ASK)).status == 200
    answer = exchange(line, request("/act", ASK, "connection: close"))
    assert answer.headers["connection"] == "close"
    assert heard(line) is None


def test_connection_resets_do_not_affect_other_clients(live):
    for _ in range(20):
        with connected(live.address) as line:
            line.sendall(request("/act", ASK))
            line.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
            )  # a reset, not a good-bye
    assert httpx.post(f"{live.url}/act", content=ASK).status_code == 200


SLOW = {
    "part of the first line": b"POST /act HT",
    "part of the head": b"POST /act HTTP/1.1\r\nhost: localhost\r\n",
    "/act": request("/act", ASK)[:-5],
    "/act in chunks": b"POST /act HTTP/1.1\r\nhost: localhost\r\n"
    b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "/interpolate": request("/interpolate", ASK)[:-5],
    "/encode": request("/encode", ASK, "content-type: application/octet-stream")[:-5],
    "compressed": request("/act", ASK, "content-encoding: gzip")[:-5],
}


def send_in_parts(line: socket.socket, parts: list[bytes]) -> None:
    for part in parts:
        line.sendall(part)
        time.sleep(0.02)


def assert_refused_as_slow(line: socket.socket, started: float) -> None:
    """The next reply is 408 and the last one, well before and after the times it may take."""
    answer = hear(line)
    assert 0.3 < time.monotonic() - started < 5
    assert (answer.status, json.loads(answer.body)["code"]) == (408, "request_timeout")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert heard(line) is None


@pytest.mark.parametrize("part", SLOW.values(), ids=SLOW)
def test_a_request_that_does_not_arrive_in_time_is_answered_408(line, part):
    started = time.monotonic()
    line.sendall(part)
    assert_refused_as_slow(line, started)


@pytest.mark.parametrize("at_once", [0, 200], ids=["head", "body"])
def test_a_request_that_trickles_in_is_answered_408_all_the_same(line, at_once):
    """Each byte soon after the one before it, and all of them too late."""
    sent = request("/act", ASK)
    line.sendall(sent[:at_once])
    started = time.monotonic()
    for i in range(at_once, len(sent)):
        if select([line], [], [], 0.02)[0]:
            break
        line.sendall(sent[i : i + 1])
    assert_refused_as_slow(line, started)


def test_the_second_request_of_a_connection_has_the_same_time(line):
    for _ in range(2):
        assert exchange(line, request("/act", ASK)).status == 200
        time.sleep(0.7)  # idle, which is no slow request
    started = time.monotonic()
    line.sendall(request("/act", ASK)[:-5])
    assert_refused_as_slow(line, started)


def test_a_slow_body_after_its_refusal_ends_the_connection(line):
    """What is refused by its head is answered at once; the rest of it is waited for no longer."""
    started = time.monotonic()
    line.sendall(request("/nowhere", ASK)[:-5])
    assert heard(line) is not None
    assert heard(line) is None
    assert time.monotonic() - started < 5


def test_a_connection_without_a_request_is_closed_without_a_reply(line):
    started = time.monotonic()
    assert heard(line) is None
    assert 0.8 < time.monotonic() - started < 5  # `keep_alive`, not the time of a request


def test_a_session_outlives_the_time_of_a_request(live):
    with connect(f"{live.url.replace('http', 'ws')}/session") as socket:
        time.sleep(0.8)
        socket.send(json.dumps({"z": Z.tolist()}))
        assert "skill" in json.loads(socket.recv(timeout=10))


def test_an_oversized_body_is_refused_before_it_is_read(line):
    head = request("/act", b"").replace(b"length: 0", b"length: 200001")
    answer = exchange(line, head)  # and not a byte of the body
    assert (answer.status, json.loads(answer.body)["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(("path", "body"), [("/act", ASK), ("/interpolate", b"{}")])
def test_oversized_head_returns_431_and_closes(line, path, body):
    fits = request(path, body, f"x-note: {'n' * (MAX_HEAD - 200)}")
    assert exchange(line, fits).status in (200, 422)
    answer = exchange(line, request(path, body, f"x-note: {'n' * MAX_HEAD}"))
    assert (answer.status, json.loads(answer.body)["code"]) == (431, "head_too_large")
    assert answer.headers["connection"] == "close"


def test_a_head_that_does_not_end_ends_the_connection(line):
    started = time.monotonic()
    line.sendall(b"GET /healthz HTTP/1.1\r\nx-note: ")
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        send_in_parts(line, [b"n" * MAX_HEAD] * 10)
    assert time.monotonic() - started < 0.4  # before the time of a request is over


def test_requests_of_too_many_connections_are_refused_with_a_time(live):
    time.sleep(0.7)  # those of the tests before are closed
    lines = [connected(live.address) for _ in range(70)]
    time.sleep(0.2)
    last = exchange(lines[-1], request("/act", ASK))
    assert (last.status, last.headers["retry-after"]) == (503, "1")
    assert json.loads(last.body)["code"] == "overloaded"
    assert exchange(lines[0], request("/act", ASK)).status == 200
    with pytest.raises((InvalidMessage, OSError)):
        connect(
            f"ws://localhost:{live.address[1]}/session",
            sock=connected(live.address),
            open_timeout=10,
        )
    for one in lines:
        one.close()


def test_garbage_is_a_400_and_the_next_connection_is_served(live):
    for data in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"POST /act HTTP/9.9\r\n\r\n",
        b"\0" * 1000,
    ):
        with connected(live.address) as line:
            line.sendall(data)
            answer = heard(line)
            assert answer is None or 400 <= answer.status < 500
    assert httpx.get(f"{live.url}/readyz").status_code == 200
