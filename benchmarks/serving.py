"""How fast the service is, against a plain FastAPI endpoint: same network, machine, run and client.

    python -m benchmarks.serving --json           about seven minutes, and two for each peer
    python -m benchmarks.serving --seconds 1      a quick run

Of the peers, those are measured that `python -m benchmarks.peers` has installed.

The server has the first core, the client the last. The servers take turns, three times; medians are
compared. Batches of 64 rows come on 3 connections, so that the server need not wait for its client.
Two workers are compared with one on 128 connections, 64 for each, by wrk, where it is installed:
our own client, in Python, takes a fifth of the cores they share."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import orjson

from benchmarks import load, network, peers, wrk
from benchmarks.servers import (
    Address,
    await_ready,
    binary_body,
    cold_start,
    json_body,
    running,
    yardstick,
)
from skills_store import places
from skills_store.store import Store

Servers = dict[str, Address]
SETTLE = 0.3  # s: the previous server, on the same core, may still serve closed connections


def bare_rows_per_second(policy: bytes, rows: int, seconds: float) -> float:
    """ONNX Runtime alone, one thread, in this process."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(policy, options, providers=["CPUExecutionProvider"])
    feed = dict(zip(("state", "z"), network.rows(rows), strict=True))
    done = 0
    started = time.perf_counter()
    while (spent := time.perf_counter() - started) < seconds:
        session.run(["targets"], feed)
        done += rows
    return done / spent


def sharing_cores(address: Address, request: bytes, seconds: float, cores: set[int]) -> float:
    """Requests/s on 128 connections, by a client on the same `cores` as the server."""
    if wrk.installed():
        return wrk.closed(address, request, 128, max(1, round(seconds)), cores)
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        return load.closed(address, [request], 128, seconds).rate
    finally:
        os.sched_setaffinity(0, mine)


def characters_held(
    address: Address, request: bytes, seconds: float, opening: tuple[bytes, ...] = ()
) -> int:
    """The most characters at 30 Hz whose p99 is under 33 ms."""
    held = 0
    for count in load.steps(24, 2000):
        found = load.paced(address, request, count, 30, seconds, opening=opening)
        if found.percentile(99) > 33 or len(found.times) < 0.95 * count * 30 * seconds:
            break
        held = count
    return held


def session() -> tuple[bytes, tuple[bytes, ...]]:
    """A binary step of a WebSocket session, and the messages that open the session."""
    state, z = network.rows(1)
    upgrade = (
        b"GET /session HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    return load.masked(state.tobytes()), (
        upgrade,
        load.masked(orjson.dumps({"z": z[0].tolist()}), b"\x81"),
    )


def plan_loads(servers: Servers, seconds: float) -> dict[str, Callable[[], load.Result]]:
    """Name of a figure -> the closed load that it comes from."""
    bodies = {"json": json_body(1, False), "binary": binary_body(1, False)}

    def closed(server: str, body: bytes, connections: int) -> Callable[[], load.Result]:
        return lambda: load.closed(servers[server], [body], connections, seconds)

    loads: dict[str, Callable[[], load.Result]] = {}
    for connections in (1, 8, 64):
        loads[f"yardstick_c{connections}"] = closed("yardstick", json_body(1), connections)
        for kind, body in bodies.items():
            loads[f"{kind}_c{connections}"] = closed("service", body, connections)
    loads["batch64_json"] = closed("service", json_body(64), 3)
    loads["batch64_binary"] = closed("service", binary_body(64), 3)
    loads["binary_c64_int8"] = closed("int8", bodies["binary"], 64)
    loads["json_c1_int8"] = closed("int8", bodies["json"], 1)
    return loads


def count_characters_held(servers: Servers, seconds: float) -> dict[str, int]:
    """Characters held at 30 Hz, by kind of request."""
    body = json_body(1, False)
    binary = binary_body(1, False)
    step, opening = session()
    return {
        "yardstick": characters_held(servers["yardstick"], json_body(1), seconds),
        "json": characters_held(servers["service"], body, seconds),
        "binary": characters_held(servers["service"], binary, seconds),
        "binary_two_workers": characters_held(servers["two"], binary, seconds),
        "session": characters_held(servers["service"], step, seconds, opening),
        "session_two_workers": characters_held(servers["two"], step, seconds, opening),
    }


def measure(servers: Servers, policy: bytes, seconds: float, cores: set[int]) -> dict[str, Any]:
    """Ratios, with their inputs under `seen`; medians of three rounds (`characters_30hz`: one)."""
    loads = plan_loads(servers, seconds)
    results: dict[str, list[load.Result]] = {name: [] for name in loads}
    bare: list[float] = []
    shared: dict[str, list[float]] = {"service": [], "two": []}
    for _ in range(3):
        for name, run in loads.items():
            time.sleep(SETTLE)
            results[name].append(run())
        bare.append(bare_rows_per_second(policy, 64, seconds))
        for name, rates in shared.items():
            rates.append(sharing_cores(servers[name], json_body(1, False), seconds, cores))
    rate = {name: statistics.median(r.rate for r in rounds) for name, rounds in results.items()}
    if unanswered := [name for name, median in rate.items() if not median]:
        raise SystemExit(
            f"{', '.join(unanswered)}: no reply in {seconds:g} s. Is the machine free?"
        )
    for name, rounds in results.items():
        if failures := [round.statuses for round in rounds if set(round.statuses) != {200}]:
            raise SystemExit(f"{name}: replies by status {failures[0]}, expected only 200")
    p50 = percentiles(results, 50)
    p99 = percentiles(results, 99)
    one_worker = statistics.median(shared["service"])
    two_workers = statistics.median(shared["two"])
    rows = statistics.median(bare)
    held = count_characters_held(servers, seconds)
    return {
        "json_c8": rate["json_c8"] / rate["yardstick_c8"],
        "json_c64": rate["json_c64"] / rate["yardstick_c64"],
        "json_c64_p99": p99["json_c64"] / p99["yardstick_c64"],
        "binary_c64": rate["binary_c64"] / rate["yardstick_c64"],
        "p50_c1": p50["json_c1"] / p50["yardstick_c1"],
        "binary_c64_int8": rate["binary_c64_int8"] / rate["yardstick_c64"],
        "p50_c1_int8": p50["json_c1_int8"] / p50["yardstick_c1"],
        "two_workers": two_workers / one_worker,
        "batch64_json": rate["batch64_json"] * 64 / rows,
        "batch64_binary": rate["batch64_binary"] * 64 / rows,
        "characters_30hz": max(count for name, count in held.items() if name != "yardstick"),
        "seen": {
            "requests_per_s": rate | {"one_worker": one_worker, "two_workers": two_workers},
            "client_of_two_workers": "wrk" if wrk.installed() else "benchmarks.load",
            "p50_ms": p50,
            "p99_ms": p99,
            "bare_rows_per_s": rows,
            "characters_30hz": held,
            "statuses": {name: dict(rounds[-1].statuses) for name, rounds in results.items()},
        },
    }


def percentiles(results: Mapping[str, Sequence[load.Result]], percent: int) -> dict[str, float]:
    """The median over the rounds of each load's percentile, ms."""
    return {
        name: statistics.median(result.percentile(percent) for result in rounds)
        for name, rounds in results.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each point")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    first = {cores[0]}
    last = {cores[-1]}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        file = Path(folder) / "policy.onnx"
        policy = network.publish(Store(store))
        network.publish_int8(Store(store), policy, "int8")
        file.write_bytes(policy)
        envs = places.peers().resolve()
        seen = {
            name: peers.measure_peer(name, envs, file, store, options.seconds)
            for name in peers.installed(envs)
        }
        os.sched_setaffinity(0, last)
        starts = [cold_start(store, first) for _ in range(3)]
        with (
            running(store, first) as service,
            running(store, first, skill="int8") as int8,
            running(store, set(cores), workers=2) as two,
            yardstick(file, first) as plain,
        ):
            servers = {"service": service, "int8": int8, "two": two, "yardstick": plain}
            for address in servers.values():
                await_ready(address, json_body(1))
            result = measure(servers, policy, options.seconds, set(cores))
    result["cold_start_s"], result["idle_mib"] = (
        statistics.median(each) for each in zip(*starts, strict=True)
    )
    result["peers"] = peers.least(seen) if seen else None
    result["seen"]["peers"] = seen
    print(json.dumps(_rounded(result)) if options.json else json.dumps(_rounded(result), indent=2))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    main()
