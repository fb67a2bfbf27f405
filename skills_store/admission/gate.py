"""Admission of an ONNX file before it is published: what passes is plain arithmetic, and does what its manifest says.

Read from bytes only. The one module that imports onnx, and only a publish imports it: the runtime trusts digests.
The cheap structural refusals come first: a hostile file can crash onnx.checker or ONNX Runtime, but not a loop over
protobuf fields.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import checker, numpy_helper, shape_inference

from skills_store.errors import GateRefused
from skills_store.manifest import Graph, Tensor

MAX_BYTES = 256 * 2**20
MAX_NODES = 10_000
MAX_INITIALIZERS = 10_000

# Pure functions of tensors. Absent on purpose: If, Loop, Scan and the Sequence family (control flow), Random* (an act
# must repeat), and anything outside the default domain (EPContext and custom ops carry native code).
_ALLOWED = """
    Abs Acos Add And ArgMax ArgMin Asin Atan Cast CastLike Ceil Celu Clip Concat Constant ConstantOfShape Cos Cosh
    CumSum Div Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu Gemm Greater
    GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log
    LogSoftmax MatMul Max Mean Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow Range Reciprocal ReduceL1 ReduceL2
    ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round
    ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign Split Sqrt Squeeze
    Sub Sum Swish Tan Tanh Tile Transpose Trilu Unsqueeze Where Xor Einsum RMSNormalization
"""
OPERATORS = frozenset(_ALLOWED.split())
DTYPES = ("FLOAT", "FLOAT16", "DOUBLE", "INT32", "INT64", "BOOL")


def admit(where: str, data: bytes, graph: Graph) -> None:
    """Raise GateRefused with every reason found; return when `data` may be served as `graph`."""
    if len(data) > MAX_BYTES:
        raise GateRefused(where, [f"{len(data)} bytes, over the cap of {MAX_BYTES}"])
    model = _parsed(where, data)
    # Each stage may rely on the one before it, and is not run at all when that one refused.
    for stage in (_structure, _weights, _checked, lambda m: _interface(m, graph)):
        if reasons := list(dict.fromkeys(stage(model))):
            raise GateRefused(where, reasons[:8])


def _parsed(where: str, data: bytes) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise GateRefused(where, ["not an ONNX file"]) from error
    if not model.graph.node:  # protobuf reads much garbage as an empty message
        raise GateRefused(where, ["not an ONNX file, or one with no nodes"])
    return model


def _structure(model: onnx.ModelProto) -> Iterator[str]:
    graph = model.graph
    if model.functions:
        yield f"{len(model.functions)} model-local functions"
    if model.training_info:
        yield "training information"
    if graph.sparse_initializer or graph.quantization_annotation:
        yield "sparse or quantised initialisers"
    if len(graph.node) > MAX_NODES or len(graph.initializer) > MAX_INITIALIZERS:
        yield f"{len(graph.node)} nodes and {len(graph.initializer)} initialisers, over the cap of {MAX_NODES}"
        return
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            yield f"operator {node.domain}.{node.op_type} is outside the default domain"
        elif node.op_type not in OPERATORS:
            yield f"operator {node.op_type} is not on the allow-list"
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            yield f"operator {node.op_type} carries a subgraph"
        if any(a.HasField("sparse_tensor") or a.sparse_tensors or a.ref_attr_name for a in node.attribute):
            yield f"operator {node.op_type} carries a sparse tensor or a function's attribute"


def _weights(model: onnx.ModelProto) -> Iterator[str]:
    for name, tensor in _tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            yield f"{name} keeps its data outside the file"
        elif (kind := onnx.TensorProto.DataType.Name(tensor.data_type)) not in DTYPES:
            yield f"{name} is of type {kind}, not one of {', '.join(DTYPES)}"
        else:
            try:
                values = numpy_helper.to_array(tensor)
            except (ValueError, TypeError) as error:
                yield f"{name} cannot be read: {error}"
                continue
            if not np.isfinite(values).all():
                yield f"{name} has values that are not finite"
    for node in model.graph.node:
        for attribute in node.attribute:
            if not np.isfinite([attribute.f, *attribute.floats]).all():
                yield f"attribute {attribute.name} of {node.op_type} is not finite"


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        yield f"initialiser {tensor.name!r}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            found = [attribute.t] if attribute.HasField("t") else []
            for tensor in (*found, *attribute.tensors):
                yield f"constant {(node.name or node.op_type)!r}", tensor


def _checked(model: onnx.ModelProto) -> Iterator[str]:
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError, ValueError) as error:
        yield f"onnx.checker: {' '.join(str(error).split())[:300]}"


def _interface(model: onnx.ModelProto, graph: Graph) -> Iterator[str]:
    opsets = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if opsets != [graph.opset]:
        yield f"opset {opsets}, but the manifest says {graph.opset}"
    for side, values, tensors in (
        ("input", model.graph.input, graph.inputs),
        ("output", model.graph.output, graph.outputs),
    ):
        found, declared = {v.name: v for v in values}, {t.name: t for t in tensors}
        if set(found) != set(declared):
            yield f"{side}s {', '.join(sorted(found))}, but the manifest says {', '.join(sorted(declared))}"
            continue
        for name, tensor in declared.items():
            yield from _same(f"{side} {name!r}", found[name], tensor)


def _same(what: str, value: onnx.ValueInfoProto, tensor: Tensor) -> Iterator[str]:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type != onnx.TensorProto.FLOAT:
        yield f"{what} is not a float32 tensor"
        return
    # A free axis has a name of the exporter's choosing; only that it is free counts.
    shape = [d.dim_value if d.HasField("dim_value") else "free" for d in kind.shape.dim]
    wanted = ["free" if isinstance(axis, str) else axis for axis in tensor.shape]
    if shape != wanted:
        yield f"{what} has shape {shape}, but the manifest says {wanted}"
