"""Servers to measure, each in a process of its own on given cores, and their requests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from benchmarks import load, network

Address = tuple[str, int]


@contextmanager
def running(root: Path, core: set[int], **settings: object) -> Iterator[Address]:
    """`python -m serving` over `root`."""
    with _serving(root, core, settings) as (_, address):
        yield address


@contextmanager
def _serving(
    root: Path, core: set[int], settings: dict[str, object]
) -> Iterator[tuple[int, Address]]:
    added = {f"REPERTOIRE_{name.upper()}": str(value) for name, value in settings.items()}
    where = os.environ | {"REPERTOIRE_STORE": str(root), "REPERTOIRE_PORT": "0"} | added
    with _process([sys.executable, "-m", "serving"], where, core) as process:
        line = process.stdout.readline()
        yield process.pid, ("127.0.0.1", int(re.findall(r":(\d+)", line)[0]))


def cold_start(root: Path, core: set[int]) -> tuple[float, float]:
    """Seconds from the start to the first 200 of /readyz, and the process's memory then, in MiB."""
    started = time.perf_counter()
    with _serving(root, core, {}) as (pid, address):
        await_ready(address, b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n", every=0.01)
        took = time.perf_counter() - started
        resident = re.findall(
            r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        )
        return took, int(resident[0]) / 1024


@contextmanager
def yardstick(policy: Path, core: set[int], port: int = 8765) -> Iterator[Address]:
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        "benchmarks.yardstick:app",
        "--port",
        str(port),
    ]
    command += [
        "--no-access-log",
        "--log-level",
        "warning",
        "--loop",
        "uvloop",
        "--http",
        "httptools",
    ]
    with _process(command, os.environ | {"REPERTOIRE_YARDSTICK": str(policy)}, core):
        yield "127.0.0.1", port


@contextmanager
def _process(command: list[str], where: dict[str, str], core: set[int]) -> Iterator[Any]:
    pinned = ["taskset", "-c", ",".join(map(str, sorted(core))), *command]
    with subprocess.Popen(pinned, env=where, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def await_ready(address: Address, request: bytes, every: float = 0.1) -> None:
    for _ in range(round(30 / every)):
        try:
            if load.closed(address, [request], 1, min(every, 0.05)).statuses.get(200):
                return
        except OSError:
            time.sleep(every)
    raise RuntimeError(f"nothing answers at {address}")


def json_body(rows: int, batch: bool = True) -> bytes:
    state, z = network.rows(rows)
    fields = (
        {"state": state.tolist(), "z": z.tolist()}
        if batch
        else {"state": state[0].tolist(), "z": z[0].tolist()}
    )
    return load.post("/act", orjson.dumps(fields), {"content-type": "application/json"})


def binary_body(rows: int, batch: bool = True) -> bytes:
    state, z = network.rows(rows)
    shapes = [f"{rows}x" if batch else "" for _ in range(2)]
    named = f"state={shapes[0]}{network.STATE},z={shapes[1]}{network.LATENT}"
    headers = {"content-type": "application/octet-stream", "x-tensors": named}
    return load.post("/act", state.tobytes() + z.tobytes(), headers)
