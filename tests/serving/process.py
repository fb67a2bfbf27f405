"""The service as its users run it, a process of its own; and sockets to ask it with, byte by
byte."""

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
    line: str  # what it printed
    process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def workers(self) -> list[int]:
        """The processes that serve, oldest first, where there are several."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.pid), "-f", "spawn_main"], capture_output=True, check=False
        )
        return [int(pid) for pid in found.stdout.split()]

    def said(self) -> str:
        """All that it wrote since, once it has ended."""
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
    """`python -m serving` on a free port, ended by SIGTERM; no traceback may be in what it said."""
    where = environment(root, **{"port": 0, "drain": 0.0} | settings)
    command = [sys.executable, "-m", "serving"]
    with subprocess.Popen(
        command, env=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=60)


def exchange(line: socket.socket, data: bytes) -> Answer:
    """Send `data`, and return the next answer."""
    line.sendall(data)
    return hear(line)


def hear(line: socket.socket) -> Answer:
    """The next answer."""
    answer = heard(line)
    assert answer is not None, "the server closed the connection"
    return answer


def heard(line: socket.socket) -> Answer | None:
    """The next answer; None where the server closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := line.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    while len(body) < int(headers["content-length"]):
        body += line.recv(65536)
    return Answer(int(first.split()[1]), headers, body)


def shares(address: tuple[str, int], count: int) -> Counter[str]:
    """How many of `count` connections, all open at once, each process has, by what its request ids
    begin with."""
    with ExitStack() as held:
        lines = [held.enter_context(connected(address)) for _ in range(count)]
        for line in lines:
            line.sendall(request("/healthz", b"", method="GET"))
        return Counter(hear(line).headers["x-request-id"].split("-")[0] for line in lines)


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
