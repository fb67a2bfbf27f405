"""The load continues on a new connection where the server closes one."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import load

REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n%s\r\nok"
ANNOUNCED = b"connection: close\r\n"


@contextmanager
def closing_server(header: bytes) -> Iterator[tuple[str, int]]:
    """A server that replies once on each connection, with `header`, and closes it."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(1000):
                self.request.sendall(REPLY % header)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield ("127.0.0.1", server.server_address[1])
        server.shutdown()


@pytest.mark.parametrize("header", [ANNOUNCED, b""], ids=["announced", "not-announced"])
def test_closed_load_reopens_connections(header: bytes) -> None:
    with closing_server(header) as address:
        result = load.closed(address, [load.post("/act", b"{}")], 2, 0.5)
    assert set(result.statuses) == {200}
    assert result.statuses[200] > 4  # more than one on each connection


@pytest.mark.parametrize("header", [ANNOUNCED, b""], ids=["announced", "not-announced"])
def test_paced_load_reopens_connections(header: bytes) -> None:
    with closing_server(header) as address:
        result = load.paced(address, load.post("/act", b"{}"), 2, 20.0, 0.5)
    assert set(result.statuses) == {200}
    assert result.statuses[200] > 4
