"""The operations of the peers' networks, once as numpy in float64 and once as ONNX nodes.

A network is written once, as a function of an arithmetic. The published graph is then compared with
the same function in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from skills_store.checkpoints.tensors import Array, Layer
from skills_store.graph import Tensor

OPSET = 20
IR = 10
TINY = 1e-12  # the least that torch's normalize divides by
X = TypeVar("X")


class Arithmetic(Protocol[X]):
    def linear(self, x: X, layer: Layer) -> X: ...  # (B, in) -> (B, out)
    def relu(self, x: X) -> X: ...
    def tanh(self, x: X) -> X: ...
    def sigmoid(self, x: X) -> X: ...
    def clip(self, x: X, bound: float) -> X: ...
    def standardize(self, x: X, mean: Array, std: Array) -> X: ...  # (x - mean) / std
    def scale(self, x: X, scale: Array, offset: Array) -> X: ...  # x scale + offset
    def concatenate(self, a: X, b: X) -> X: ...  # (B, m), (B, n) -> (B, m + n)
    def normalize(self, x: X) -> X: ...  # rows to length 1
    def reverse_time(self, window: X) -> X: ...  # (B, W, F), the time axis reversed
    def flatten(self, window: X) -> X: ...  # (B, W, F) -> (B, W F)
    def squeeze_column(self, x: X) -> X: ...  # (B, 1) -> (B,)


def run_hidden(on: Arithmetic[X], layers: Sequence[Layer], x: X) -> X:
    """Every hidden layer of every peer: linear, then ReLU."""
    for layer in layers:
        x = on.relu(on.linear(x, layer))
    return x


class NumpyArithmetic:
    """Float64 in numpy: the reference."""

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

    def standardize(self, x: Array, mean: Array, std: Array) -> Array:
        return (x - mean) / std

    def scale(self, x: Array, scale: Array, offset: Array) -> Array:
        return x * scale + offset

    def concatenate(self, a: Array, b: Array) -> Array:
        return np.concatenate([a, b], axis=1)

    def normalize(self, x: Array) -> Array:
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), TINY)

    def reverse_time(self, window: Array) -> Array:
        return window[:, ::-1]

    def flatten(self, window: Array) -> Array:
        return window.reshape(len(window), -1)

    def squeeze_column(self, x: Array) -> Array:
        return x[:, 0]


class OnnxArithmetic:
    """Float32 nodes of one ONNX graph, the published one. A value is a tensor's name in it."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def linear(self, x: str, layer: Layer) -> str:
        return self._add_node(
            "Gemm", x, self._add_floats(layer.weight), self._add_floats(layer.bias), transB=1
        )

    def relu(self, x: str) -> str:
        return self._add_node("Relu", x)

    def tanh(self, x: str) -> str:
        return self._add_node("Tanh", x)

    def sigmoid(self, x: str) -> str:
        return self._add_node("Sigmoid", x)

    def clip(self, x: str, bound: float) -> str:
        return self._add_node("Clip", x, self._add_floats(-bound), self._add_floats(bound))

    def standardize(self, x: str, mean: Array, std: Array) -> str:
        return self._add_node(
            "Div", self._add_node("Sub", x, self._add_floats(mean)), self._add_floats(std)
        )

    def scale(self, x: str, scale: Array, offset: Array) -> str:
        return self._add_node(
            "Add", self._add_node("Mul", x, self._add_floats(scale)), self._add_floats(offset)
        )

    def concatenate(self, a: str, b: str) -> str:
        return self._add_node("Concat", a, b, axis=1)

    def normalize(self, x: str) -> str:
        length = self._add_node("ReduceL2", x, self._add_integers(1), keepdims=1)
        return self._add_node("Div", x, self._add_node("Max", length, self._add_floats(TINY)))

    def reverse_time(self, window: str) -> str:
        last = self._add_integers(-1)
        before_first = self._add_integers(-(2**62))
        return self._add_node(
            "Slice", window, last, before_first, self._add_integers(1), self._add_integers(-1)
        )

    def flatten(self, window: str) -> str:
        return self._add_node("Flatten", window, axis=1)

    def squeeze_column(self, x: str) -> str:
        return self._add_node("Squeeze", x, self._add_integers(1))

    def model(self, inputs: Sequence[Tensor], output: Tensor, result: str) -> bytes:
        self.nodes.append(helper.make_node("Identity", [result], [output.name]))
        graph = helper.make_graph(
            self.nodes,
            output.name,
            _describe_tensors(inputs),
            _describe_tensors([output]),
            self.constants,
        )
        model_proto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR
        )
        return model_proto.SerializeToString(deterministic=True)

    def _add_node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"x{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _add_floats(self, values: ArrayLike) -> str:
        return self._add_initializer(np.asarray(values, dtype=np.float32))

    def _add_integers(self, *values: int) -> str:
        return self._add_initializer(np.asarray(values, dtype=np.int64))

    def _add_initializer(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name


def _describe_tensors(tensors: Sequence[Tensor]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in tensors]
