"""The short way through the connection and the way through the framework: the same answers to the same bytes."""

import json
import socket
import time

import httpx
import numpy as np
import pytest

from skills_store.library import SkillLibrary
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import connected, hear, heard, request, running

STATE, Z = state_rows(1)[0], skill_rows(1)[0]
ASK = json.dumps({"state": STATE.tolist(), "z": Z.tolist()}).encode()
DECIDE = json.dumps({"state": STATE.tolist(), "goal": goal_rows(1)[0].tolist()}).encode()
RAW = STATE.tobytes() + Z.tobytes()
TENSORS = "x-tensors: state=69,z=8"


@pytest.fixture(scope="module")
def live(standing):
    with running(standing.root, max_body=200_000, request_timeout=0.5, max_connections=60) as service:
        yield service


@pytest.fixture
def line(live):
    with connected(live.address) as line:
        yield line


def asked(line: socket.socket, data: bytes):
    line.sendall(data)
    return hear(line)


BODIES = [
    ("/act", ASK, ()),
    ("/act", RAW, ("content-type: application/octet-stream", TENSORS)),
    ("/controllers/reach/act", DECIDE, ()),
    ("/act", b"{", ()),
    ("/act", b"", ()),
    ("/act", ASK[:-1], ()),
    ("/act", b'{"state": [1], "z": [1]}', ()),
    ("/act", RAW[:-1], ("content-type: application/octet-stream", TENSORS)),
    ("/controllers/nobody/act", DECIDE, ()),
    ("/controllers/humanoid/act", DECIDE, ()),
]


@pytest.mark.parametrize(("path", "body", "headers"), BODIES)
def test_both_ways_give_the_same_bytes(line, path, body, headers):
    short = asked(line, request(path, body, *headers))
    # A query makes a request unusual, and means nothing to these routes.
    long = asked(line, request(f"{path}?way=long", body, *headers))
    assert (short.status, short.body) == (long.status, long.body)
    assert short.headers.keys() == long.headers.keys()
    same = short.headers.keys() - {"date", "server-timing", "x-request-id"}
    assert {name: short.headers[name] for name in same} == {name: long.headers[name] for name in same}


def test_a_chunked_body_a_split_one_and_one_that_expects_are_read_whole(line, standing):
    wanted = SkillLibrary.open(standing, "humanoid").act([STATE], [Z])[0]
    chunked = b"POST /act HTTP/1.1\r\nhost: local\r\ntransfer-encoding: chunked\r\n\r\n"
    chunked += b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (ASK[:100], ASK[100:])) + b"0\r\n\r\n"
    answers = [asked(line, chunked)]
    whole = request("/act", ASK)
    for i in range(0, len(whole), 300):
        line.sendall(whole[i : i + 300])
        time.sleep(0.002)
    answers.append(hear(line))
    line.sendall(request("/act", b"", "expect: 100-continue").replace(b"length: 0", b"length: %d" % len(ASK)))
    assert line.recv(100).startswith(b"HTTP/1.1 100")
    answers.append(asked(line, ASK))
    for answer in answers:
        np.testing.assert_array_equal(np.array(json.loads(answer.body)["targets"], np.float32), wanted)


def test_pipelined_requests_are_answered_in_their_order(line):
    line.sendall(request("/act", ASK) + request("/healthz", b"", method="GET") + request("/act", b"{") * 2)
    assert [int(status.split()[1]) for status in replies(line, 4)] == [200, 200, 422, 422]


def test_a_head_that_was_seen_before_gives_the_same_bytes_every_time(line):
    for path, body, headers in BODIES:
        first, *others = [asked(line, request(path, body, *headers)) for _ in range(3)]
        assert {(answer.status, answer.body) for answer in others} == {(first.status, first.body)}
        assert all(answer.headers.keys() == first.headers.keys() for answer in others)


def test_a_known_request_inside_another_is_part_of_that(line):
    """What looks like a request of its own is a header's value or a body where it arrives in the middle of one."""
    known = request("/act", ASK)
    assert [asked(line, known).status for _ in range(2)] == [200, 200]
    line.sendall(b"GET /healthz HTTP/1.1\r\nhost: local\r\nx-value: ")
    time.sleep(0.05)
    assert json.loads(asked(line, known).body) == {"status": "ok"}  # not an action: it asked for its health

    with socket.create_connection(line.getpeername()) as other:
        other.sendall(b"POST /act HTTP/1.1\r\nhost: local\r\ncontent-length: %d\r\n\r\n" % len(known))
        time.sleep(0.05)
        answer = asked(other, known)
        assert (answer.status, json.loads(answer.body)["code"]) == (422, "not_json")
        assert asked(other, known).status == 200


def test_a_known_head_with_more_or_less_behind_it_is_read_as_it_is(line):
    known = request("/act", ASK)
    assert [asked(line, known).status for _ in range(2)] == [200, 200]
    line.sendall(known[:-7])
    time.sleep(0.05)
    assert asked(line, known[-7:]).status == 200
    line.sendall(known + known)  # pipelined
    assert [int(answer.split()[1]) for answer in replies(line, 2)] == [200, 200]


def replies(line: socket.socket, count: int) -> list[bytes]:
    """The status lines of so many answers, whatever arrives together."""
    file, statuses = line.makefile("rb"), []
    for _ in range(count):
        statuses.append(file.readline())
        length = 0
        while (header := file.readline()) != b"\r\n":
            if header.lower().startswith(b"content-length"):
                length = int(header.split(b":")[1])
        file.read(length)
    return statuses


def test_keep_alive_is_kept_and_close_is_closed(line):
    for _ in range(3):
        assert asked(line, request("/act", ASK)).status == 200
    answer = asked(line, request("/act", ASK, "connection: close"))
    assert answer.headers["connection"] == "close"
    assert heard(line) is None


def test_a_client_that_vanishes_costs_the_others_nothing(live):
    for _ in range(20):
        with connected(live.address) as line:
            line.sendall(request("/act", ASK))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not a good-bye
    assert httpx.post(f"{live.url}/act", content=ASK).status_code == 200


@pytest.mark.parametrize("part", [b"", b"POST /act HT", request("/act", ASK)[:-5], request("/encode", ASK)[:-5]])
def test_a_request_that_does_not_arrive_is_cut_off(line, part):
    started = time.monotonic()
    line.sendall(part)
    answer = heard(line)
    assert answer is None or (answer.status, json.loads(answer.body)["code"]) == (408, "too_slow")
    assert 0.3 < time.monotonic() - started < 5


def test_an_oversized_body_is_refused_before_it_is_read(line):
    head = request("/act", b"").replace(b"length: 0", b"length: 200001")
    answer = asked(line, head)  # and not a byte of the body
    assert (answer.status, json.loads(answer.body)["code"]) == (413, "body_too_large")


def test_too_many_connections_are_told_when_to_come_back(live):
    time.sleep(0.7)  # those of the tests before are gone
    lines = [connected(live.address) for _ in range(70)]
    time.sleep(0.2)
    last = hear(lines[-1])
    assert (last.status, last.headers["retry-after"]) == (503, "1")
    assert json.loads(last.body)["code"] == "overloaded"
    assert asked(lines[0], request("/act", ASK)).status == 200
    for one in lines:
        one.close()


def test_garbage_is_a_400_and_the_next_connection_is_served(live):
    for data in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"POST /act HTTP/9.9\r\n\r\n", b"\0" * 1000):
        with connected(live.address) as line:
            line.sendall(data)
            answer = heard(line)
            assert answer is None or 400 <= answer.status < 500
    assert httpx.get(f"{live.url}/readyz").status_code == 200
