"""The service compared with other inference servers: the same ONNX, machine, run and client; JSON,
one row a request.

    python -m benchmarks.peers --json       all of them; the first run installs, for 15 minutes
    python -m benchmarks.peers litserve --seconds 1

Each peer has an environment of its own under --envs and a session like ours (one thread, no
spinning). It is measured at 1, 8 and 64 connections, then ours at the same, on the same core. A
peer that cannot be installed or started here is reported as that, and has no figures."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks import load, network
from benchmarks.servers import Address, await_ready, json_body, running
from skills_store import places
from skills_store.store import Store

HERE = Path(__file__).parent / "peer_servers"
PORT = 8900
COMMON = ("onnxruntime==1.31.1", "numpy==2.4.6")
CONNECTIONS = (1, 8, 64)
OURS = "repertoire"


@dataclass(frozen=True)
class Peer:
    packages: tuple[str, ...]
    command: Callable[[Path, Path, int], list[str]]  # (environment's bin, policy, port)
    request: Callable[[], bytes]


def script(name: str) -> Callable[[Path, Path, int], list[str]]:
    return lambda env, policy, port: [str(env / "python"), f"{name}.py", str(policy), str(port)]


def plain() -> bytes:
    return json_body(1)


def inference() -> bytes:
    """A request of the Open Inference Protocol, in JSON."""
    inputs = [
        {
            "name": name,
            "shape": list(array.shape),
            "datatype": "FP32",
            "data": array.ravel().tolist(),
        }
        for name, array in zip(("state", "z"), network.rows(1), strict=True)
    ]
    return load.post(
        "/v2/models/policy/infer",
        orjson.dumps({"id": "1", "inputs": inputs}),
        {"content-type": "application/json"},
    )


PEERS = {
    "litserve": Peer(("litserve==0.2.19",), script("with_litserve"), plain),
    "bentoml": Peer(
        ("bentoml==1.4.39",),
        lambda env, _, port: [
            str(env / "bentoml"),
            "serve",
            "with_bentoml:Policy",
            "--port",
            str(port),
        ],
        plain,
    ),
    "ray": Peer(("ray[serve]==2.60.0",), script("with_ray"), plain),
    "kserve": Peer(("kserve==0.21.0",), script("with_kserve"), inference),
    "mlserver": Peer(
        ("mlserver==1.7.1",), lambda env, *_: [str(env / "mlserver"), "start", "."], inference
    ),
    "pytriton": Peer(("nvidia-pytriton==0.7.0",), script("with_pytriton"), inference),
}


def environment(name: str, peer: Peer, envs: Path) -> Path:
    """The bin folder of an environment that has the peer; made on first use."""
    where = envs / name
    if not (where / "ready").exists():
        shutil.rmtree(where, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(where)], check=True)
        pip = [
            str(where / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
        ]
        # Some peers pin an older numpy or ONNX Runtime: install theirs.
        if subprocess.run(
            [*pip, *peer.packages, *COMMON], check=False, stderr=subprocess.DEVNULL
        ).returncode:
            subprocess.run([*pip, *peer.packages, "onnxruntime", "numpy"], check=True)
        (where / "ready").touch()
    return where / "bin"


@contextmanager
def serving(name: str, peer: Peer, envs: Path, policy: Path, core: set[int]) -> Iterator[Address]:
    env = environment(name, peer, envs)
    with tempfile.TemporaryDirectory() as folder:
        for file in HERE.glob("*.py"):
            shutil.copy(file, folder)
        _mlserver_settings(Path(folder))
        command = [
            "taskset",
            "-c",
            ",".join(map(str, sorted(core))),
            *peer.command(env, policy, PORT),
        ]
        where = os.environ | {
            "POLICY": str(policy),
            "PATH": f"{env}:{os.environ['PATH']}",
            "RAY_DEDUP_LOGS": "0",
        }
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=folder, env=where, stdout=out, stderr=out, start_new_session=True
            )
        try:
            _await(peer.request(), process, log)
            yield "127.0.0.1", PORT
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children: a surviving worker would share the core with the next
    measurement."""
    for signal in (15, 9):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)


def _await(request: bytes, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            break
        try:
            if load.closed(("127.0.0.1", PORT), [request], 1, 0.3).statuses.get(200):
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise RuntimeError(
        f"it did not start: {log.read_text(encoding='utf-8', errors='replace')[-400:]}"
    )


def _mlserver_settings(folder: Path) -> None:
    server = {
        "http_port": PORT,
        "grpc_port": PORT + 1,
        "metrics_port": PORT + 2,
        "debug": False,
        "parallel_workers": 0,
    }
    model = {
        "name": "policy",
        "implementation": "with_mlserver.Policy",
        "max_batch_size": 64,
        "max_batch_time": 0.001,
    }
    (folder / "settings.json").write_text(json.dumps(server))
    (folder / "model-settings.json").write_text(json.dumps(model))


def measure_load(address: Address, request: bytes, seconds: float) -> dict[str, float]:
    """Requests/s, p50 and p99 (ms) at each number of connections; medians of three."""
    found: dict[str, float] = {}
    for c in CONNECTIONS:
        runs = [load.closed(address, [request], c, seconds) for _ in range(3)]
        for run in runs:
            if set(run.statuses) != {200}:
                raise RuntimeError(f"statuses at {c} connections were {run.statuses}")
        found[f"c{c}"] = statistics.median(run.rate for run in runs)
        found[f"p50_c{c}"] = statistics.median(run.percentile(50) for run in runs)
        found[f"p99_c{c}"] = statistics.median(run.percentile(99) for run in runs)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peers", nargs="*", default=list(PEERS), help=f"of {', '.join(PEERS)}")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each point")
    parser.add_argument("--envs", type=Path, default=places.peers())
    given = parser.parse_args()
    if unknown := set(given.peers) - PEERS.keys():
        parser.error(f"no peer {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        policy = Path(folder) / "policy.onnx"
        policy.write_bytes(network.publish(Store(store)))
        seen = {
            name: measure_peer(name, given.envs.resolve(), policy, store, given.seconds)
            for name in given.peers
        }
    result = {**least(seen), "seen": seen}
    print(json.dumps(result) if given.json else json.dumps(result, indent=2))


def installed(envs: Path) -> list[str]:
    return [name for name in PEERS if (envs / name / "ready").exists()]


def measure_peer(
    name: str, envs: Path, policy: Path, store: Path, seconds: float
) -> dict[str, Any]:
    """Results of the peer and of ours for the same requests, one after the other; or why there are
    none."""
    cores = sorted(os.sched_getaffinity(0))
    try:
        environment(name, PEERS[name], envs)
        os.sched_setaffinity(0, {cores[-1]})
        with serving(name, PEERS[name], envs, policy, {cores[0]}) as address:
            theirs = measure_load(address, PEERS[name].request(), seconds)
        with running(store, {cores[0]}) as address:
            await_ready(address, json_body(1, False))
            ours = measure_load(address, json_body(1, False), seconds)
        return {"theirs": theirs, OURS: ours, "ratio": {c: ours[c] / theirs[c] for c in theirs}}
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        return {"not measured": " ".join(str(error).split())[:300]}
    finally:
        os.sched_setaffinity(0, cores)


def least(seen: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    """Ratios to the best peer at each point: the least of requests/s, the most of p99."""
    measured = [found["ratio"] for found in seen.values() if "ratio" in found]
    rates = {
        f"c{c}": min((ratio[f"c{c}"] for ratio in measured), default=None) for c in CONNECTIONS
    }
    tails = {
        f"p99_c{c}": max((ratio[f"p99_c{c}"] for ratio in measured), default=None)
        for c in CONNECTIONS
    }
    return {**rates, **tails}


if __name__ == "__main__":
    main()
