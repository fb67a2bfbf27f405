"""WS /session: the actions of /act, with z, blends and holds kept by the server."""

import asyncio
import json
import os
import signal
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from starlette.types import Message
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from serving.access import keys
from serving.access.guard import ANYONE
from serving.api import sphere
from serving.api.session_route import serve_session
from serving.models.service import make_service
from serving.settings import Settings
from skills_store.runtime.library import Controller
from tests.serving.local import goal_rows, skill_rows, state_rows
from tests.serving.process import connected, running

STATES = state_rows(12)
(A, B) = skill_rows(2)
GOAL = goal_rows(1)[0]


class Session:
    def __init__(self, socket):
        self.socket = socket

    def send_json(self, **fields):
        self.socket.send(json.dumps(fields, default=lambda array: array.tolist()))
        return json.loads(self.socket.recv(timeout=10))

    def send_binary(self, *arrays):
        self.socket.send(b"".join(array.astype("<f4").tobytes() for array in arrays))
        reply = self.socket.recv(timeout=10)
        return np.frombuffer(reply, "<f4") if isinstance(reply, bytes) else json.loads(reply)


@contextmanager
def open_session(live, **headers):
    with connect(f"{live.url.replace('http', 'ws')}/session", additional_headers=headers) as socket:
        yield Session(socket)


@pytest.fixture
def session(live):
    with open_session(live) as found:
        yield found


def test_session_returns_library_targets_as_text_and_binary(session, library):
    opened = session.send_json(skill="humanoid@1", z=A)
    assert (opened["skill"]["version"], opened["state_dim"]) == (1, 69)
    expected = library.act(STATES, np.tile(A, (12, 1)))
    for state, targets in zip(STATES[:6], expected[:6], strict=True):
        np.testing.assert_array_equal(
            np.array(session.send_json(state=state)["targets"], np.float32), targets
        )
    for state, targets in zip(STATES[6:], expected[6:], strict=True):
        np.testing.assert_array_equal(session.send_binary(state), targets)


def test_a_websocket_at_another_path_is_refused_without_an_error_in_the_log(shared):
    with running(shared.root) as live:
        url = live.url.replace("http", "ws")
        with pytest.raises(InvalidStatus) as refused, connect(f"{url}/sessions"):
            pass
        response = refused.value.response
        found = json.loads(response.body)
        assert (response.status_code, found["code"]) == (404, "not_found")
        assert found["expected"] == "/session"
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(f"{url}/session", origin=Origin("http://x.y")),
        ):
            pass
        assert '"level":"error"' not in live.stop_and_read()


def test_text_replies_say_that_the_last_z_was_normalised(session):
    assert session.send_json(z=2 * A)["z_normalised"] is True
    assert session.send_json(state=STATES[0])["z_normalised"] is True
    assert session.send_json(state=STATES[0], z=B)["z_normalised"] is False
    assert session.send_json(z=0.5 * A)["z_normalised"] is True


def test_expected_of_a_session_is_one_row(session):
    session.send_json(controller="reach")
    for fields in ({"state": STATES[:2], "goal": GOAL}, {"state": STATES[0], "goal": [GOAL] * 2}):
        found = session.send_json(**fields)
        assert found["code"] == "wrong_shape"
        assert "[B" not in found["expected"]


def test_new_z_applies_from_the_step_that_sets_it(session, library):
    session.send_json(z="walk")
    np.testing.assert_array_equal(
        session.send_binary(STATES[0], B), library.act(STATES[:1], B[None])[0]
    )
    np.testing.assert_array_equal(
        session.send_binary(STATES[1]), library.act(STATES[1:2], B[None])[0]
    )
    assert "skill" in session.send_json(z=A)  # without a state, z is only stored
    np.testing.assert_array_equal(
        session.send_binary(STATES[2]), library.act(STATES[2:3], A[None])[0]
    )


def test_blend_follows_the_sphere_for_its_steps_and_holds(session):
    session.send_json(z=A)
    session.send_binary(STATES[0])
    seen = [session.send_json(state=STATES[1], z=B, blend=5)["z"]] + [
        session.send_json(state=STATES[i])["z"] for i in range(2, 8)
    ]
    expected = sphere.path(np.array([A, B]), 6)[1:]
    np.testing.assert_allclose(seen[:5], expected, atol=1e-6)
    np.testing.assert_allclose(seen[5:], [B, B], atol=1e-6)


def test_controller_decision_is_held_for_its_steps(session, shared):
    controller = Controller.open(shared, "reach")
    opened = session.send_json(controller="reach", hold=3)
    assert (opened["hold"], opened["goal_dim"], opened["controller"]["name"]) == (3, 3, "reach")
    goals = np.tile(GOAL, (12, 1))
    decided = controller.decide(STATES, goals)
    expected = controller.library.act(STATES, decided[[i // 3 * 3 for i in range(12)]])
    np.testing.assert_array_equal(session.send_binary(STATES[0], GOAL), expected[0])
    for state, targets in zip(STATES[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(session.send_binary(state), targets)


def test_session_hold_defaults_to_the_controllers_hold(session):
    assert session.send_json(controller="reach")["hold"] == 6


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"skill": "nobody", "z": "walk"}, "unknown_skill", "skill"),
        ({"z": "fly"}, "unknown_clip", "z"),
        ({}, "missing_field", "z"),
        ({"z": [1.0]}, "wrong_shape", "z"),
        ({"z": [2.0] + [0.0] * 7, "strict": True}, "not_on_the_sphere", "z"),
        ({"z": "walk", "hold": 2}, "unknown_field", "hold"),
        ({"controller": "humanoid"}, "wrong_kind", "controller"),
        ({"controller": "nobody"}, "unknown_skill", "controller"),
        ({"controller": "reach", "skill": "humanoid"}, "unknown_field", "skill"),
        ({"controller": "reach", "strict": True}, "unknown_field", "strict"),
        ({"controller": "reach", "hold": 0}, "wrong_type", "hold"),
        ({"speed": 1}, "unknown_field", "speed"),
    ],
)
def test_invalid_session_opening_is_refused_and_can_be_retried(session, fields, code, field):
    found = session.send_json(**fields)
    assert (found["code"], found["field"]) == (code, field)
    assert "skill" in session.send_json(z="walk")


def test_invalid_message_leaves_the_session_unchanged(session, library):
    session.send_json(z=A)
    expected = library.act(STATES[:1], A[None])[0]
    bad = [
        {"state": [1.0]},
        {"state": STATES[:2]},
        {"state": STATES[0], "goal": [1, 2, 3]},
        {"state": STATES[0], "z": -A, "blend": 4},
        {"state": STATES[0], "z": [0.0] * 8},
        {"state": STATES[0], "z": B, "blend": -1},
        {"state": STATES[0], "blend": 4},
        {"stat": 1},
    ]
    session.send_binary(STATES[0])
    for fields in bad:
        assert set(session.send_json(**fields)) == {"code", "message", "field", "expected"}
    for numbers in (STATES[0][:-1], np.full(69, np.nan, np.float32), np.zeros(0, np.float32)):
        assert session.send_binary(numbers)["code"] in ("not_a_frame", "not_finite")
    session.socket.send("{")
    assert json.loads(session.socket.recv(timeout=10))["code"] == "not_json"
    np.testing.assert_array_equal(session.send_binary(STATES[0]), expected)


def test_controller_session_without_a_goal_is_refused(session):
    session.send_json(controller="reach")
    assert session.send_binary(STATES[0])["code"] == "missing_field"
    assert isinstance(session.send_binary(STATES[0], GOAL), np.ndarray)
    assert session.send_json(state=STATES[0], z=A)["code"] == "unknown_field"


def test_concurrent_sessions_are_independent(live, library):
    with open_session(live) as one, open_session(live) as other:
        one.send_json(z=A)
        other.send_json(z=B)
        for state in STATES:
            np.testing.assert_array_equal(
                one.send_binary(state), library.act(state[None], A[None])[0]
            )
            np.testing.assert_array_equal(
                other.send_binary(state), library.act(state[None], B[None])[0]
            )


def test_session_needs_a_key_and_its_steps_count_as_requests(shared, tmp_path):
    token, key = keys.make_key("game", ["act"], rate=5)
    keys.write(tmp_path / "keys.json", [key])
    with running(shared.root, keys=tmp_path / "keys.json") as live:
        with pytest.raises(InvalidStatus, match="401"), open_session(live):
            pass
        with open_session(live, authorization=f"Bearer {token}") as session:
            session.send_json(z="walk")
            assert isinstance(session.send_binary(STATES[0]), np.ndarray)
            replies = (
                session.send_binary(STATES[0]) for _ in range(200)
            )  # a slow machine hardly exceeds the rate
            assert "rate_limited" in (reply["code"] for reply in replies if isinstance(reply, dict))


def keep_stepping(session, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert isinstance(session.send_binary(STATES[0]), np.ndarray)
        time.sleep(0.1)


def test_a_session_ends_when_its_key_is_removed(shared, tmp_path):
    file = tmp_path / "keys.json"
    token, key = keys.make_key("game", ["act"])
    _, other = keys.make_key("other", ["act"])
    keys.write(file, [key, other])
    with (
        running(shared.root, keys=file, refresh=0.1) as live,
        open_session(live, authorization=f"Bearer {token}") as session,
    ):
        session.send_json(z="walk")
        keys.write(file, [other])
        with pytest.raises(ConnectionClosedError, match="1008"):
            keep_stepping(session, seconds=10)


def test_a_session_ends_when_its_key_is_replaced_under_the_same_name(shared, tmp_path):
    file = tmp_path / "keys.json"
    token, key = keys.make_key("game", ["act"])
    keys.write(file, [key])
    with (
        running(shared.root, keys=file, refresh=0.1) as live,
        open_session(live, authorization=f"Bearer {token}") as session,
    ):
        session.send_json(z="walk")
        keys.write(file, [keys.make_key("game", ["act"])[1]])
        with pytest.raises(ConnectionClosedError, match="1008"):
            keep_stepping(session, seconds=10)


def test_refused_openings_count_against_the_rate(shared, tmp_path):
    token, key = keys.make_key("game", ["act"], rate=5)
    keys.write(tmp_path / "keys.json", [key])
    with (
        running(shared.root, keys=tmp_path / "keys.json") as live,
        open_session(live, authorization=f"Bearer {token}") as session,
    ):
        replies = (session.send_json(skill="nobody", z="walk") for _ in range(200))
        assert "rate_limited" in (reply["code"] for reply in replies)


def count_sessions(live):
    text = httpx.get(f"{live.url}/metrics").text
    return next(
        float(line.split()[1])
        for line in text.splitlines()
        if line.startswith("repertoire_sessions ")
    )


def test_sessions_of_killed_workers_are_not_counted(shared):
    with running(shared.root, workers=2) as live, open_session(live) as session:
        session.send_json(z="walk")
        assert count_sessions(live) == 1
        for worker in live.workers:
            os.kill(worker, signal.SIGKILL)
        end = time.monotonic() + 20
        while count_sessions(live):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_sessions_are_counted_while_they_are_open(live):
    before = count_sessions(live)
    with open_session(live) as session:
        session.send_json(z="walk")
        assert count_sessions(live) == before + 1


def frame(payload, opcode=0x82, mask=b"\1\2\3\4"):
    """A client's frame as bytes: `websockets` leaves no control over how one is sent."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
    return bytes([opcode]) + length + mask + bytes(x ^ mask[i % 4] for i, x in enumerate(payload))


def receive_frames(sock, count):
    """The next `count` frames of the server: (opcode, payload)."""
    file = sock.makefile("rb")
    found = []
    for _ in range(count):
        opcode, size = file.read(2)
        size = int.from_bytes(file.read(2), "big") if size == 126 else size
        found.append((opcode & 15, file.read(size)))
    return found


@pytest.fixture
def sock(live):
    with connected(live.address) as sock:
        sock.sendall(
            b"GET /session HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: "
            b"upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert sock.recv(1000).startswith(b"HTTP/1.1 101")
        sock.sendall(frame(json.dumps({"skill": "humanoid@1", "z": A.tolist()}).encode(), 0x81))
        assert receive_frames(sock, 1)[0][0] == 1
        yield sock


def test_frames_get_replies_in_order_however_they_are_split(sock, library):
    """Whole frames take the fast path; split, joined and fragmented ones the general one."""
    expected = library.act(STATES, np.tile(A, (12, 1))).astype("<f4")
    data = [state.astype("<f4").tobytes() for state in STATES]
    text = json.dumps({"state": STATES[2].tolist()}).encode()
    sock.sendall(frame(data[0]))
    assert receive_frames(sock, 1) == [(2, expected[0].tobytes())]
    whole = frame(data[1])
    for part in (whole[:1], whole[1:9], whole[9:]):
        sock.sendall(part)
        time.sleep(0.01)
    assert receive_frames(sock, 1) == [(2, expected[1].tobytes())]
    sent = frame(text, 0x81) + frame(data[3]) + frame(b"hey", 0x89) + frame(data[4][:50], 0x02)
    sock.sendall(sent)
    sock.sendall(frame(data[4][50:], 0x80))  # the second half, as a continuation frame
    sock.sendall(frame(data[5]))
    found = receive_frames(sock, 5)
    assert [payload for kind, payload in found if kind == 2] == [
        expected[i].tobytes() for i in (3, 4, 5)
    ]
    assert [payload for kind, payload in found if kind == 10] == [b"hey"]
    targets = json.loads(next(payload for kind, payload in found if kind == 1))["targets"]
    np.testing.assert_array_equal(np.array(targets, np.float32), expected[2])


def test_pipelined_frames_get_one_reply_each(sock, library):
    expected = library.act(STATES, np.tile(A, (12, 1))).astype("<f4")
    for state in STATES:
        sock.sendall(frame(state.astype("<f4").tobytes()))
    assert [payload for _, payload in receive_frames(sock, 12)] == [
        row.tobytes() for row in expected
    ]


def test_invalid_frame_returns_a_problem_and_keeps_the_session(sock, library):
    sock.sendall(frame(b"\0" * 12))
    kind, payload = receive_frames(sock, 1)[0]
    assert (kind, json.loads(payload)["code"]) == (1, "not_a_frame")
    sock.sendall(frame(STATES[0].astype("<f4").tobytes()))
    assert receive_frames(sock, 1)[0] == (
        2,
        library.act(STATES[:1], A[None])[0].astype("<f4").tobytes(),
    )


def test_an_unmasked_frame_ends_the_session(sock):
    sock.sendall(b"\x82\x04\0\0\0\0")  # a client must mask (RFC 6455, 5.1)
    (kind, payload), *_ = receive_frames(sock, 1)
    assert (kind, int.from_bytes(payload[:2], "big")) == (8, 1002)


class LeavingClient:
    """ASGI callables of a client that opens a session, sends a state and leaves before a reply."""

    def __init__(self, error: Exception) -> None:
        opening = {
            "type": "websocket.receive",
            "text": json.dumps({"z": skill_rows(1)[0].tolist()}),
        }
        state = {"type": "websocket.receive", "bytes": state_rows(1)[0].tobytes()}
        self.messages = iter([{"type": "websocket.connect"}, opening, state])
        self.error = error
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return next(self.messages)

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if "bytes" in message:
            raise self.error


@pytest.mark.parametrize(("error", "logged"), [(OSError("left"), 0), (RuntimeError("a defect"), 1)])
def test_session_logs_errors_but_not_client_disconnects(shared, caplog, error, logged):
    service = make_service(Settings(store=shared.root))
    client = LeavingClient(error)
    scope = {"type": "websocket", "subprotocols": []}
    asyncio.run(serve_session(service, scope, client.receive, client.send, ANYONE))
    assert len([one for one in caplog.records if one.getMessage() == "a session failed"]) == logged
