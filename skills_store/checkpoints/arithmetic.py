"""What the peers' networks are made of, once as numpy in float64 and once as ONNX nodes.

A network is written once, as a function of one of these; the graph that is published is then compared with the numbers
that the same function gives in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from skills_store.checkpoints.tensors import Array, Layer
from skills_store.manifest import Tensor

OPSET, IR = 20, 10
TINY = 1e-12  # torch's normalize divides by no less
X = TypeVar("X")


class Arithmetic(Protocol[X]):
    def linear(self, x: X, layer: Layer) -> X: ...  # (B, in) -> (B, out)
    def relu(self, x: X) -> X: ...
    def tanh(self, x: X) -> X: ...
    def sigmoid(self, x: X) -> X: ...
    def clip(self, x: X, bound: float) -> X: ...
    def standard(self, x: X, mean: Array, std: Array) -> X: ...  # (x - mean) / std
    def scaled(self, x: X, scale: Array, offset: Array) -> X: ...  # x scale + offset
    def joined(self, a: X, b: X) -> X: ...  # (B, m), (B, n) -> (B, m + n)
    def unit(self, x: X) -> X: ...  # rows to length 1
    def newest_first(self, window: X) -> X: ...  # (B, W, F), the time axis turned round
    def flat(self, window: X) -> X: ...  # (B, W, F) -> (B, W F)
    def column(self, x: X) -> X: ...  # (B, 1) -> (B,)


def through(on: Arithmetic[X], layers: Sequence[Layer], x: X) -> X:
    """Every hidden layer of every peer: linear, then ReLU."""
    for layer in layers:
        x = on.relu(on.linear(x, layer))
    return x


class Numbers:
    """Float64, in numpy: what the network means."""

    def linear(self, x: Array, layer: Layer) -> Array:
        return x @ layer.weight.T + layer.bias

    def relu(self, x: Array) -> Array:
        return np.maximum(x, 0)

    def tanh(self, x: Array) -> Array:
        return np.tanh(x)

    def sigmoid(self, x: Array) -> Array:
        return 0.5 * (1 + np.tanh(0.5 * x))  # no overflow far from 0

    def clip(self, x: Array, bound: float) -> Array:
        return np.clip(x, -bound, bound)

    def standard(self, x: Array, mean: Array, std: Array) -> Array:
        return (x - mean) / std

    def scaled(self, x: Array, scale: Array, offset: Array) -> Array:
        return x * scale + offset

    def joined(self, a: Array, b: Array) -> Array:
        return np.concatenate([a, b], axis=1)

    def unit(self, x: Array) -> Array:
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), TINY)

    def newest_first(self, window: Array) -> Array:
        return window[:, ::-1]

    def flat(self, window: Array) -> Array:
        return window.reshape(len(window), -1)

    def column(self, x: Array) -> Array:
        return x[:, 0]


class Drawing:
    """Float32, as nodes of one ONNX graph: what is published. A value is the name of a tensor in it."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def linear(self, x: str, layer: Layer) -> str:
        return self._node("Gemm", x, self._constant(layer.weight), self._constant(layer.bias), transB=1)

    def relu(self, x: str) -> str:
        return self._node("Relu", x)

    def tanh(self, x: str) -> str:
        return self._node("Tanh", x)

    def sigmoid(self, x: str) -> str:
        return self._node("Sigmoid", x)

    def clip(self, x: str, bound: float) -> str:
        return self._node("Clip", x, self._constant(-bound), self._constant(bound))

    def standard(self, x: str, mean: Array, std: Array) -> str:
        return self._node("Div", self._node("Sub", x, self._constant(mean)), self._constant(std))

    def scaled(self, x: str, scale: Array, offset: Array) -> str:
        return self._node("Add", self._node("Mul", x, self._constant(scale)), self._constant(offset))

    def joined(self, a: str, b: str) -> str:
        return self._node("Concat", a, b, axis=1)

    def unit(self, x: str) -> str:
        length = self._node("ReduceL2", x, self._integers(1), keepdims=1)
        return self._node("Div", x, self._node("Max", length, self._constant(TINY)))

    def newest_first(self, window: str) -> str:
        last, before_first = self._integers(-1), self._integers(-(2**62))
        return self._node("Slice", window, last, before_first, self._integers(1), self._integers(-1))

    def flat(self, window: str) -> str:
        return self._node("Flatten", window, axis=1)

    def column(self, x: str) -> str:
        return self._node("Squeeze", x, self._integers(1))

    def model(self, inputs: Sequence[Tensor], output: Tensor, result: str) -> bytes:
        self.nodes.append(helper.make_node("Identity", [result], [output.name]))
        graph = helper.make_graph(self.nodes, output.name, _values(inputs), _values([output]), self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        return made.SerializeToString(deterministic=True)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _constant(self, values: ArrayLike) -> str:
        return self._kept(np.asarray(values, dtype=np.float32))

    def _integers(self, *values: int) -> str:
        return self._kept(np.asarray(values, dtype=np.int64))

    def _kept(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name


def _values(tensors: Sequence[Tensor]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in tensors]
