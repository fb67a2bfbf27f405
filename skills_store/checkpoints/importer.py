"""A peer's checkpoint -> a published skill library: recognized, built as ONNX, compared with numpy,
passed through the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from skills_store.admission.gate import admit
from skills_store.checkpoints import ase, mimickit
from skills_store.checkpoints.arithmetic import OPSET, Arithmetic, NumpyArithmetic, OnnxArithmetic
from skills_store.checkpoints.layouts import WINDOW, width
from skills_store.checkpoints.network import Network
from skills_store.checkpoints.tensors import Array, Tensors, load
from skills_store.disk.blobs import describe
from skills_store.errors import CheckpointRefusal
from skills_store.graph import Graph, Parity, Tensor, make_latent_tensor, make_target_tensor
from skills_store.manifest import Action, Latent, Lineage, Manifest
from skills_store.reference import check_name
from skills_store.runtime.onnx_session import load_net
from skills_store.store import Store
from skills_store.version import Version

PEERS: dict[str, Callable[[Tensors], Network]] = {ase.MARK: ase.read, mimickit.MARK: mimickit.read}
BATCH_SIZES = (1, 3, 64)
ROWS = 512
TOLERANCE = 1e-5
UNKNOWN_SEED = -1  # the peers' checkpoints have no seed


def publish(store: Store, file: Path, name: str, licence: str, mjcf: Path | None = None) -> Version:
    check_name(name)
    mjcf_text = _read_text(mjcf) if mjcf else ""
    tensors = load(file)
    marks = [mark for mark in PEERS if tensors.has(mark)]
    if not marks:
        raise tensors.refusal(
            "it is not an ASE checkpoint of a supported project: it lacks all of "
            f"{', '.join(PEERS)}"
        )
    network = PEERS[marks[0]](tensors)
    graphs, files = _build_graphs(str(file), network)
    manifest = Manifest(
        kind="skills",
        observations=network.peer,
        name=name,
        character=network.body.character(mjcf_text),
        graphs=graphs,
        latent=Latent(dim=network.latent),
        action=Action(offset=_to_floats(network.offset), scale=_to_floats(network.scale)),
        lineage=Lineage(
            config={
                "checkpoint": {
                    "peer": network.peer,
                    "file": file.name,
                    **describe(file.read_bytes()).model_dump(),
                }
            },
            seed=UNKNOWN_SEED,
            packages={"onnx": onnx.__version__},
        ),
        licence=licence,
    )
    return store.publish(manifest, files)


def _read_text(mjcf: Path) -> str:
    try:
        return mjcf.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointRefusal(
            str(mjcf), f"as an MJCF it must be text in UTF-8, but byte {error.start} is not"
        ) from error


def _build_graphs(source: str, network: Network) -> tuple[dict[str, Graph], dict[str, bytes]]:
    state = Tensor(name="state", shape=("B", width(network.state)), slices=network.state)
    window = Tensor(name="window", shape=("B", WINDOW, width(network.frame)), slices=network.frame)
    z = make_latent_tensor(network.latent)
    targets = make_target_tensor(network.body.hinges)
    style = Tensor(name="style", shape=("B",))
    rows = _sample_rows(network)
    graphs = {}
    files = {}
    plans = {
        "policy": (network.policy, (state, z), targets),
        "encoder": (network.encoder, (window,), z),
        "style": (network.style, (window,), style),
    }
    for name, (function, inputs, output) in plans.items():
        builder = OnnxArithmetic()
        data = builder.model(inputs, output, function(builder, *(tensor.name for tensor in inputs)))
        # The gate expects a parity before it is measured; it is replaced below.
        graph = Graph(
            file=f"{name}.onnx",
            opset=OPSET,
            inputs=inputs,
            outputs=(output,),
            parity=Parity(max_abs_error=0.0, rows=1, batch_sizes=BATCH_SIZES),
        )
        feed = {tensor.name: rows[tensor.name] for tensor in inputs}
        graphs[name] = graph.model_copy(
            update={"parity": _measure_parity(f"{name} of {source}", data, graph, feed, function)}
        )
        files[graph.file] = data
    return graphs, files


def _measure_parity(
    label: str, data: bytes, graph: Graph, rows: dict[str, Array], function: Callable[..., Any]
) -> Parity:
    """The graph's error against the same network in float64. The graph runs only after the gate has
    passed it.
    """
    admit(label, data, graph)
    net = load_net(label, data, graph, threads=1, device="cpu")
    numbers: Arithmetic[Array] = NumpyArithmetic()
    expected = function(numbers, *rows.values())
    worst = 0.0
    for size in BATCH_SIZES:
        for start in range(0, ROWS if size == max(BATCH_SIZES) else 16 * size, size):
            actual = net.run(**{key: x[start : start + size] for key, x in rows.items()})
            worst = max(worst, float(np.abs(actual - expected[start : start + size]).max()))
    if not worst <= TOLERANCE:
        raise CheckpointRefusal(
            label, f"its graph differs from the network by {worst:.2e}, allowed {TOLERANCE:.0e}"
        )
    return Parity(max_abs_error=worst, rows=ROWS, batch_sizes=BATCH_SIZES)


def _sample_rows(network: Network) -> dict[str, Array]:
    """Rows distributed like the training data, by the normalizers, every other one far outside;
    rounded to float32, as clients send.
    """
    rng = np.random.default_rng(0)
    rows = {}
    for name, norm in network.norms.items():
        factor = np.where(np.arange(ROWS) % 2, 10.0, 1.0).reshape(-1, *[1] * norm.mean.ndim)
        rows[name] = norm.mean + factor * norm.std * rng.standard_normal((ROWS, *norm.mean.shape))
    z = rng.standard_normal((ROWS, network.latent))
    rows["z"] = z / np.linalg.norm(z, axis=1, keepdims=True)
    return {name: values.astype(np.float32).astype(np.float64) for name, values in rows.items()}


def _to_floats(values: Array) -> tuple[float, ...]:
    return tuple(values.astype(np.float32).tolist())
