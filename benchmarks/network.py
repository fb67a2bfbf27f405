"""The network of the benchmarks: state 253 and z 64 -> 1024 -> 1024 -> 512 -> 28 targets, ReLU,
normalizer inside."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from pretrain.publishing.int8 import quantize_to_int8
from skills_store.graph import Graph, Parity, Tensor
from skills_store.manifest import Character, Latent, Lineage, Manifest
from skills_store.store import Store

STATE = 253
LATENT = 64
WINDOW = 2
LAYERS = (1024, 1024, 512, 28)
OPSET = 20


def publish(store: Store, name: str = "humanoid", seed: int = 0) -> bytes:
    """Publish one skill library with this network; returns the policy's bytes."""
    rng = np.random.default_rng(seed)
    policy = _policy(rng)
    encoder = _encoder(rng)
    store.publish(_manifest(name), {"policy.onnx": policy, "encoder.onnx": encoder})
    return policy


def publish_int8(store: Store, policy: bytes, name: str) -> None:
    """Publish the same with `policy` in int8."""
    state, z = rows(4096)
    feed = {"state": state, "z": z}
    rounded = quantize_to_int8(policy, feed)
    expected, found = (
        np.asarray(
            ort.InferenceSession(graph, providers=["CPUExecutionProvider"]).run(None, feed)[0]
        )
        for graph in (policy, rounded)
    )
    parity = Parity(
        max_abs_error=float(np.abs(found - expected).max()),
        rows=len(found),
        batch_sizes=(len(found),),
    )
    manifest = _manifest(name)
    graphs = {**manifest.graphs, "policy": POLICY.model_copy(update={"parity": parity})}
    encoder = _encoder(np.random.default_rng(0))
    store.publish(
        manifest.model_copy(update={"graphs": graphs}),
        {"policy.onnx": rounded, "encoder.onnx": encoder},
    )


def rows(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """(B, 253), (B, 64), z on the sphere."""
    rng = np.random.default_rng(seed)
    state, z = (rng.standard_normal((count, width)).astype(np.float32) for width in (STATE, LATENT))
    return state, z / np.linalg.norm(z, axis=1, keepdims=True)


def _policy(rng: np.random.Generator) -> bytes:
    nodes = [
        helper.make_node("Concat", ["state", "z"], ["raw"], axis=1),
        helper.make_node("Sub", ["raw", "mean"], ["centered"]),
        helper.make_node("Div", ["centered", "std"], ["h0"]),
    ]
    width = STATE + LATENT
    weights = {"mean": np.zeros(width, np.float32), "std": np.ones(width, np.float32)}
    for i, size in enumerate(LAYERS):
        weights[f"w{i}"] = (rng.standard_normal((width, size)) / np.sqrt(width)).astype(np.float32)
        weights[f"b{i}"] = np.zeros(size, np.float32)
        last = i == len(LAYERS) - 1
        nodes.append(
            helper.make_node("Gemm", [f"h{i}", f"w{i}", f"b{i}"], ["targets" if last else f"a{i}"])
        )
        if not last:
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"h{i + 1}"]))
        width = size
    return _model(nodes, weights, POLICY)


def _encoder(rng: np.random.Generator) -> bytes:
    weights = {
        "w": rng.standard_normal((WINDOW * STATE, LATENT)).astype(np.float32),
        "axis": np.array([1]),
    }
    nodes = [
        helper.make_node("Flatten", ["window"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "w"], ["raw"]),
        helper.make_node("ReduceL2", ["raw", "axis"], ["norm"], keepdims=1),
        helper.make_node("Div", ["raw", "norm"], ["z"]),
    ]
    return _model(nodes, weights, ENCODER)


def _model(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], graph: Graph) -> bytes:
    def values(tensors: tuple[Tensor, ...]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in tensors]

    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    body = helper.make_graph(
        nodes, "benchmark", values(graph.inputs), values(graph.outputs), initializers
    )
    made = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return made.SerializeToString(deterministic=True)


def _graph(file: str, inputs: dict[str, tuple[int, ...]], output: str, width: int) -> Graph:
    tensors = tuple(Tensor(name=name, shape=("B", *shape)) for name, shape in inputs.items())
    outputs = (Tensor(name=output, shape=("B", width)),)
    parity = Parity(max_abs_error=0.0, rows=1, batch_sizes=(1,))
    return Graph(file=file, opset=OPSET, inputs=tensors, outputs=outputs, parity=parity)


POLICY = _graph("policy.onnx", {"state": (STATE,), "z": (LATENT,)}, "targets", LAYERS[-1])
ENCODER = _graph("encoder.onnx", {"window": (WINDOW, STATE)}, "z", LATENT)


def _manifest(name: str) -> Manifest:
    joints = tuple(f"joint{i}" for i in range(LAYERS[-1]))
    gains = (1.0,) * len(joints)
    body = Character(
        name="benchmark",
        skeleton={},
        joints=joints,
        kp=gains,
        kd=gains,
        damping=gains,
        torque_limit=gains,
        control_dt=1 / 30,
        mjcf="<mujoco/>",
    )
    return Manifest(
        kind="skills",
        name=name,
        character=body,
        graphs={"policy": POLICY, "encoder": ENCODER},
        latent=Latent(dim=LATENT, clips={"walk": (1.0, *[0.0] * (LATENT - 1))}),
        lineage=Lineage(config={}, seed=0),
        licence="CC0-1.0",
    )
