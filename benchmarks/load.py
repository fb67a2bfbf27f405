"""Load: many connections from one thread, on one core of its own. For measuring a server, not for
use.

`closed` sends the next request of a connection after the reply to the last. `paced` sends at a
fixed rate, independent of the server, and measures from the time that a request was due."""

from __future__ import annotations

import heapq
import select
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

LENGTH = b"content-length: "
LAST_CHUNK = b"0\r\n\r\n"
CHUNK = 65536  # bytes read at once: a larger buffer is mapped again for each reply


@dataclass
class Result:
    seconds: float
    times: list[float] = field(default_factory=list)  # s, of each request with a reply
    statuses: dict[int, int] = field(default_factory=dict)
    failed: int = 0  # connections that ended without a reply

    @property
    def rate(self) -> float:  # 1/s
        return len(self.times) / self.seconds

    def percentile(self, q: float) -> float:  # ms
        return float(np.percentile(self.times, q) * 1000) if self.times else float("nan")


class Line:
    """One keep-alive connection."""

    def __init__(self, address: tuple[str, int], opening: tuple[bytes, ...] = ()) -> None:
        self.address = address
        self.opening = opening
        self.since = 0.0
        self.open()

    def open(self) -> None:
        self.socket = socket.create_connection(self.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for message in self.opening:  # each gets a reply at once, in one piece
            self.socket.sendall(message)
            assert self.socket.recv(65536)
        self.socket.setblocking(False)
        self.buffer = b""
        self.ends = False  # the server has announced to close it

    def send(self, request: bytes, since: float) -> None:
        self.since = since
        sent = self.socket.send(request)
        if sent < len(request):  # more than the socket's buffer takes
            self.socket.setblocking(True)
            self.socket.sendall(request[sent:])
            self.socket.setblocking(False)

    def http(self) -> int | None:
        """The status once the whole response has arrived; 0 if the server closed instead."""
        data = self.socket.recv(CHUNK)
        if not data:
            return 0
        if self.buffer:
            data = self.buffer + data
        end = data.find(b"\r\n\r\n")
        head = data[: max(end, 0)].lower()
        if not _whole(data, head, end):
            self.buffer = data
            return None
        self.buffer = b""
        self.ends = b"connection: close" in head
        return int(head[9:12])

    def frame(self) -> int | None:
        """The same for one WebSocket frame."""
        data = self.socket.recv(CHUNK)
        if not data:
            return 0
        self.buffer += data
        if len(self.buffer) < 2:
            return None
        length = self.buffer[1] & 127
        start = 2
        if length == 126:
            length = int.from_bytes(self.buffer[2:4], "big")
            start = 4
        if len(self.buffer) < start + length:
            return None
        self.buffer = b""
        return 200


def _whole(data: bytes, head: bytes, end: int) -> bool:
    """Whether the response is complete; `head` is its head in lower case, and ends at `end`."""
    at = head.find(LENGTH)
    if end < 0 or at < 0:  # a body without content-length is chunked
        return end >= 0 and data.endswith(LAST_CHUNK)
    length, _, _ = head[at + len(LENGTH) :].partition(b"\r")
    return len(data) >= end + 4 + int(length)


def post(path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{lines}content-length: "
        f"{len(body)}\r\n\r\n".encode()
        + body
    )


def closed(
    address: tuple[str, int], requests: list[bytes], connections: int, seconds: float
) -> Result:
    """As fast as the server responds, on `connections` connections."""
    lines = [Line(address) for _ in range(connections)]
    poll = select.epoll()
    turn = 0
    for line in lines:
        poll.register(line.socket, select.EPOLLIN)
    by_fd = {line.socket.fileno(): line for line in lines}
    result = Result(seconds)
    started = perf_counter()
    for line in lines:
        line.send(requests[turn % len(requests)], perf_counter())
        turn += 1
    while (now := perf_counter()) - started < seconds:
        for fd, _ in poll.poll(0.1):
            line = by_fd[fd]
            status = _receive(line.http, result, line)
            if status is None:
                continue
            if status == 0 or line.ends:
                _reopen(line, fd, by_fd, poll)
            line.send(requests[turn % len(requests)], perf_counter())
            turn += 1
    result.seconds = now - started
    for line in lines:
        line.socket.close()
    return result


def paced(
    address: tuple[str, int],
    request: bytes,
    characters: int,
    hz: float,
    seconds: float,
    *,
    opening: tuple[bytes, ...] = (),
) -> Result:
    """`characters` connections, each sending `hz` times a second.

    With an `opening` they send WebSocket frames.
    """
    lines = [Line(address, opening) for _ in range(characters)]
    poll = select.epoll()
    result = Result(seconds)
    by_fd = {line.socket.fileno(): line for line in lines}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    started = perf_counter() + 0.05
    due = [(started + i / characters / hz, i) for i in range(characters)]
    waiting: dict[int, list[float]] = {i: [] for i in range(characters)}
    index = {line: i for i, line in enumerate(lines)}
    while (now := perf_counter()) < started + seconds:
        while due[0][0] <= now:
            at, i = heapq.heappop(due)
            heapq.heappush(due, (at + 1 / hz, i))
            waiting[i].append(at)
            if len(waiting[i]) == 1:
                lines[i].send(request, at)
        for fd, _ in poll.poll(max(0.0, min(due[0][0] - perf_counter(), 0.05))):
            line = by_fd[fd]
            status = _receive(line.frame if opening else line.http, result, line)
            if status is None:
                continue
            late = waiting[index[line]]
            if late:  # the server may also close a connection without a pending request
                late.pop(0)
            if status == 0 or line.ends:
                _reopen(line, fd, by_fd, poll)
            if late:
                line.send(request, late[0])
    result.times += [now - at for late in waiting.values() for at in late if now - at > 1 / hz]
    for line in lines:
        line.socket.close()
    return result


def _receive(read, result: Result, line: Line) -> int | None:
    try:
        status = read()
    except (BlockingIOError, InterruptedError):
        return None
    except ConnectionError:
        status = 0
    if status:
        result.times.append(perf_counter() - line.since)
        result.statuses[status] = result.statuses.get(status, 0) + 1
    elif status == 0:
        result.failed += 1
    return status


def _reopen(line: Line, fd: int, by_fd: dict[int, Line], poll: select.epoll) -> None:
    """Replace a connection that the server has closed or will close."""
    del by_fd[fd]
    line.socket.close()
    line.open()
    by_fd[line.socket.fileno()] = line
    poll.register(line.socket, select.EPOLLIN)


def masked(payload: bytes, opcode: bytes = b"\x82") -> bytes:
    """A client's WebSocket frame, binary by default; its mask is zero, which is valid."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
    return opcode + length + b"\0\0\0\0" + payload


def steps(first: int, most: int) -> Iterator[int]:
    """Numbers of characters to try, a sixth apart."""
    count = first
    while count <= most:
        yield count
        count += max(8, count // 6 // 8 * 8)
