"""The service as its users run it: a process of its own on a free port of the loopback address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


@contextmanager
def running_service(store: Path) -> Iterator[str]:
    """`python -m serving` over `store`; yields its URL once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"REPERTOIRE_STORE": str(store), "REPERTOIRE_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "serving"], env={**os.environ, **settings})
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=15)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/healthz", timeout=1)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the service did not answer at {url}")
