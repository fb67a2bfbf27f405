"""The service in a process of its own, and plain sockets to send it requests byte by byte."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Running:
    url: str
    startup_line: str
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def workers(self) -> list[int]:
        """The ids of the worker processes, oldest first, where there are several."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.pid), "-f", "spawn_main"], capture_output=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def stop_and_read(self) -> str:
        """Stop the service, and return its output after the first line."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        return self.process.stdout.read()

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.rpartition("//")[2].rpartition(":")
        return host.strip("[]"), int(port)


def environment(root: Path, **settings: object) -> dict[str, str]:
    added = {f"REPERTOIRE_{name.upper()}": str(value) for name, value in settings.items()}
    return os.environ | {"REPERTOIRE_STORE": str(root), "PYTHONPATH": str(ROOT)} | added


@contextmanager
def running(root: Path, **settings: object) -> Iterator[Running]:
    """`python -m serving` on a free port, ended by SIGTERM; its output may have no traceback."""
    env = environment(root, **{"port": 0, "drain": 0.0} | settings)
    command = [sys.executable, "-m", "serving"]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"https?://[\w.:\[\]]+:\d+", line)
            assert found, line + process.stdout.read()
            yield Running(found[0], line, process)
        finally:
            process.send_signal(signal.SIGTERM)
            rest = (
                process.communicate(timeout=20)[0]
                if process.stdout and not process.stdout.closed
                else ""
            )
    assert "Traceback" not in rest, rest


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=60)


def exchange(sock: socket.socket, data: bytes) -> Response:
    """Send `data`, and return the next response."""
    sock.sendall(data)
    return receive(sock)


def receive(sock: socket.socket) -> Response:
    """The next response."""
    response = receive_or_none(sock)
    assert response is not None, "the server closed the connection"
    return response


def receive_or_none(sock: socket.socket) -> Response | None:
    """The next response; None where the server closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := sock.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    while len(body) < int(headers["content-length"]):
        body += sock.recv(65536)
    return Response(int(first.split()[1]), headers, body)


def count_by_process(address: tuple[str, int], count: int) -> Counter[str]:
    """How many of `count` connections, all open at once, each process has, by the prefix of its
    request ids."""
    with ExitStack() as stack:
        socks = [stack.enter_context(connected(address)) for _ in range(count)]
        for sock in socks:
            sock.sendall(request("/healthz", b"", method="GET"))
        return Counter(receive(sock).headers["x-request-id"].split("-")[0] for sock in socks)


def request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: localhost",
        *headers,
        f"content-length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body
