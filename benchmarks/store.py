"""How quick the store is, on the disk that holds it, against a bare copy of the same bytes that
syncs each file.

python -m benchmarks.store --json

`publish_ratio` is the time of publishing 8 MB over its limit, twice the copy and 60 ms: the target
is 1 or less. `open_ms` is resolve, verify and open of that library; `ls_10k_s` the whole command
over 10,000 versions, `ls_10k_cold_s` without its index; `import_s` the import of the runtime in a
fresh interpreter. Each is a median of wall-clock time; `_cpu_` is CPU time, which depends less on
the other load of the machine."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from skills_store.admission import encode_canonical
from skills_store.disk import layout, records
from skills_store.disk.blobs import describe
from skills_store.disk.records import Record
from skills_store.graph import Graph, Tensor
from skills_store.manifest import Manifest
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store

SIZE = 8_000_000  # bytes of a library, all graphs together
MARGIN = 60.0  # ms that a publish may take over two bare copies
IMPORT = """
import sys, time
started = time.perf_counter()
import skills_store.runtime.library
print(time.perf_counter() - started)
assert not {"torch", "onnx", "mujoco"} & set(sys.modules)
"""


def library(size: int, rng: np.random.Generator) -> tuple[Manifest, dict[str, bytes]]:
    """The bundled library's manifest and start states, with graphs of the same interfaces and
    `size` bytes of random weights in all."""
    bundled = Store(BUNDLED)
    version = bundled.resolve("humanoid")
    manifest = version.manifest
    graphs = {name: g.model_copy(update={"opset": 20}) for name, g in manifest.graphs.items()}
    files = {graph.file: onnx_of(graph, size // len(graphs), rng) for graph in graphs.values()}
    if manifest.starts is not None:
        files[manifest.starts.file] = bundled.read(version, manifest.starts.file)
    return manifest.model_copy(update={"graphs": graphs}), files


def onnx_of(graph: Graph, size: int, rng: np.random.Generator) -> bytes:
    """One hidden layer, as wide as the size needs."""
    width = sum(_flat(tensor) for tensor in graph.inputs)
    out = graph.outputs[0]
    columns = _flat(out)
    hidden = size // (4 * (width + columns))
    weights = {
        "w0": rng.standard_normal((width, hidden), np.float32) / width**0.5,
        "w1": rng.standard_normal((hidden, columns), np.float32) / hidden**0.5,
        "shape": np.array([-1, *out.shape[1:]], np.int64),
    }
    nodes = [
        helper.make_node("Flatten", [tensor.name], [f"flat_{tensor.name}"])
        for tensor in graph.inputs
    ]
    nodes += [
        helper.make_node(
            "Concat", [f"flat_{tensor.name}" for tensor in graph.inputs], ["x"], axis=1
        ),
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("Tanh", ["h"], ["a"]),
        helper.make_node("MatMul", ["a", "w1"], ["y"]),
        helper.make_node("Reshape", ["y", "shape"], [out.name]),
    ]
    made = helper.make_graph(
        nodes,
        "benchmark",
        [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in graph.inputs],
        [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in graph.outputs],
        [numpy_helper.from_array(weight, name) for name, weight in weights.items()],
    )
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=10
    )
    return model.SerializeToString()


@dataclass(frozen=True)
class Elapsed:
    wall: float  # s
    cpu: float  # s


def time_action(action: Callable[[], object], whose: int = resource.RUSAGE_SELF) -> Elapsed:
    """`whose` is RUSAGE_CHILDREN for an action that runs a command."""
    used = resource.getrusage(whose)
    started = time.perf_counter()
    action()
    wall = time.perf_counter() - started
    now = resource.getrusage(whose)
    return Elapsed(wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)


def median(runs: Sequence[Elapsed]) -> Elapsed:
    return Elapsed(
        statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs)
    )


def publishing(folder: Path, repeats: int) -> dict[str, float]:
    """Publishes and copies in turn, so that other load of the disk affects both."""
    store = Store(folder / "store")
    rng = np.random.default_rng(0)
    published = []
    copied = []
    for turn in range(repeats + 1):
        manifest, files = library(SIZE, rng)
        published.append(time_action(lambda m=manifest, f=files: store.publish(m, f)))
        copied.append(time_action(lambda f=files, t=turn: _copy(folder / f"copy-{t}", f)))
    publish = median(published[1:])
    copy = median(copied[1:])  # the first one imports onnx
    opened = median(
        [time_action(lambda: SkillLibrary.open(store, "humanoid@latest")) for _ in range(repeats)]
    )
    return {
        "publish_ratio": 1e3 * publish.wall / (2e3 * copy.wall + MARGIN),
        "publish_ms": 1e3 * publish.wall,
        "publish_cpu_ms": 1e3 * publish.cpu,
        "copy_ms": 1e3 * copy.wall,
        "open_ms": 1e3 * opened.wall,
        "open_cpu_ms": 1e3 * opened.cpu,
    }


def listing(folder: Path, count: int, repeats: int) -> dict[str, float]:
    """`ls` over `count` versions, each with its own manifest, as large as a real one."""
    store = Store(folder / "many")
    fill(store, count)
    command = [sys.executable, "-m", "skills_store", "--store", str(store.root), "ls"]
    cold = _command(command)
    store.gc()  # writes the index; publishers append to it
    warm = median([_command(command) for _ in range(repeats)])
    return {
        "ls_10k_s": warm.wall,
        "ls_10k_cpu_s": warm.cpu,
        "ls_10k_cold_s": cold.wall,
        "ls_10k_cold_cpu_s": cold.cpu,
    }


def fill(store: Store, count: int) -> None:
    """Fill `store` as `count` publishes would, without syncs and the gate, which would take an
    hour."""
    manifest = Store(BUNDLED).resolve("humanoid").manifest
    blobs = store.root / "blobs/sha256"
    versions = store.root / "skills/humanoid/v"
    for directory in (blobs, versions):
        directory.mkdir(parents=True)
    (store.root / "layout.json").write_bytes(layout.OURS)
    for file in (BUNDLED / "blobs/sha256").iterdir():
        shutil.copy(file, blobs)
    before = None
    for number in range(1, count + 1):
        lineage = manifest.lineage.model_copy(update={"seed": number})
        data, _ = encode_canonical(manifest.model_copy(update={"lineage": lineage}))
        blob = describe(data)
        now = datetime.now(UTC)
        (blobs / blob.digest.removeprefix("sha256:")).write_bytes(data)
        record = Record(name="humanoid", number=number, manifest=blob, created=now, prev=before)
        line = record.model_dump_json().encode()
        records.record_path(versions, number).write_bytes(line)
        before = describe(line).digest


def importing(repeats: int) -> dict[str, float]:
    """The import without the interpreter's start: wall time is measured inside, CPU time as the
    difference from a bare interpreter."""
    seconds = []
    bare = median([_command([sys.executable, "-c", "pass"]) for _ in range(repeats)])
    runs = [
        time_action(lambda: seconds.append(_output(IMPORT)), resource.RUSAGE_CHILDREN)
        for _ in range(repeats)
    ]
    return {
        "import_s": statistics.median(map(float, seconds)),
        "import_cpu_s": median(runs).cpu - bare.cpu,
    }


def measure(folder: Path, repeats: int, count: int) -> dict[str, Any]:
    figures = {**publishing(folder, repeats), **listing(folder, count, 5), **importing(5)}
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return rounded | {"repeats": repeats, "versions": count, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--versions", type=int, default=10_000, help="in the store that is listed")
    parser.add_argument(
        "--disk",
        type=Path,
        help="a folder on the disk to measure; default: the system's temporary one",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.disk) as folder:
        result = measure(Path(folder), options.repeats, options.versions)
    print(
        json.dumps(result)
        if options.json
        else "\n".join(f"{key:<20}{value:>12}" for key, value in result.items())
    )


def _copy(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, data in files.items():
        with (folder / name).open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _command(command: Sequence[str]) -> Elapsed:
    return time_action(
        lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
        resource.RUSAGE_CHILDREN,
    )


def _output(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def _flat(tensor: Tensor) -> int:
    return int(np.prod([axis for axis in tensor.shape[1:] if isinstance(axis, int)]))


if __name__ == "__main__":
    main()
