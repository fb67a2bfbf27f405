"""Admission of an ONNX file before it is published: it must be plain arithmetic and match its
manifest.

Reads bytes only. onnx is imported only to publish: the runtime trusts digests. The structural
checks come first, because they only loop over protobuf fields; onnx.checker and ONNX Runtime have
crashed on crafted files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import checker, numpy_helper, shape_inference

from skills_store.admission import limits
from skills_store.admission.limits import CAPS, DTYPES, TOLERANCE, Caps
from skills_store.errors import GateRefusal
from skills_store.graph import Graph, Tensor


def admit(label: str, data: bytes, graph: Graph, caps: Caps = CAPS) -> None:
    """Raises GateRefusal with up to 8 reasons of the first failed stage; returns if `data` may be
    served as `graph`."""
    if len(data) > caps.bytes:
        raise GateRefusal(label, [f"{len(data)} bytes, over the cap of {caps.bytes}"])
    model = _parse(label, data)
    # A stage may rely on the previous ones: it runs only if they found nothing.
    stages = (
        lambda: _check_structure(model, caps),
        lambda: _check_weights(model, caps),
        lambda: _check_expansions(model),
        lambda: _check_rounding(model),
        lambda: _run_checker(model),
        lambda: _check_shapes(model, caps),
        lambda: _check_interface(model, graph),
        lambda: _check_parity(model, graph),
    )
    for stage in stages:
        if reasons := list(dict.fromkeys(stage())):
            raise GateRefusal(label, reasons[:8])


def _parse(label: str, data: bytes) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise GateRefusal(label, ["not an ONNX file"]) from error
    if not model.graph.node:  # protobuf reads much garbage as an empty message
        raise GateRefusal(label, ["not an ONNX file, or one with no nodes"])
    return model


def _check_structure(model: onnx.ModelProto, caps: Caps) -> Iterator[str]:
    graph = model.graph
    numbers = (
        ("nodes", len(graph.node), caps.nodes),
        ("initializers", len(graph.initializer), caps.initializers),
    )
    if above := [
        f"{count} {kind}, over the cap of {cap}" for kind, count, cap in numbers if count > cap
    ]:
        yield from above
        return
    if model.functions:
        yield f"{len(model.functions)} model-local functions"
    if model.training_info:
        yield "training information"
    if graph.sparse_initializer or graph.quantization_annotation:
        yield "sparse or quantized initializers"
    weights = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if value.name in weights:
            yield f"input {value.name!r} has a value of its own"
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            yield f"operator {node.domain}.{node.op_type} is outside the default domain"
        elif node.op_type not in limits.OPERATORS:
            yield f"operator {node.op_type} is not on the allow-list"
        if any(a.HasField("g") or a.graphs for a in node.attribute):
            yield f"operator {node.op_type} carries a subgraph"
        if any(
            a.HasField("sparse_tensor") or a.sparse_tensors or a.ref_attr_name
            for a in node.attribute
        ):
            yield f"operator {node.op_type} carries a sparse tensor or a function's attribute"


def _check_weights(model: onnx.ModelProto, caps: Caps) -> Iterator[str]:
    for name, tensor in _list_tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            yield f"{name} keeps its data outside the file"
        elif (kind := _type_name(tensor.data_type)) not in DTYPES:
            yield f"{name} is of type {kind}, not one of {', '.join(DTYPES)}"
        elif (size := math.prod(tensor.dims)) > caps.elements:
            yield f"{name} has {size} elements, over the cap of {caps.elements}"
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


def _list_tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for tensor in graph.initializer:
        yield f"initializer {tensor.name!r}", tensor
    for node in graph.node:
        for attribute in node.attribute:
            single = [attribute.t] if attribute.HasField("t") else []
            for tensor in (*single, *attribute.tensors):
                yield f"constant {(node.name or node.op_type)!r}", tensor


def _type_name(code: int) -> str:
    types = onnx.TensorProto.DataType.DESCRIPTOR.values_by_number
    return types[code].name if code in types else f"number {code}"


def _check_expansions(model: onnx.ModelProto) -> Iterator[str]:
    """The size of an Expand must follow from shapes and constants, for the later stages."""
    makers = {}
    for node in model.graph.node:
        makers |= dict.fromkeys(node.output, node)
    for node in model.graph.node:
        if node.op_type != "Expand" or len(node.input) < 2:
            continue
        pending = [node.input[1]]
        visited = set[str]()
        while pending:
            name = pending.pop()
            maker = makers.get(name)
            if name in visited or maker is None or maker.op_type == "Shape":
                continue
            visited.add(name)
            if maker.op_type not in limits.SHAPE_OPERATORS:
                yield f"the size of an Expand is computed by {maker.op_type}, not from shapes"
            pending += maker.input


def _check_rounding(model: onnx.ModelProto) -> Iterator[str]:
    """Quantization steps are constants above 0: one per tensor, or for weights one per channel."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in limits.ROUNDING:
            continue
        if extra := [a.name for a in node.attribute if a.name != "axis"]:
            yield f"{node.op_type} has {', '.join(extra)}; it may have an axis"
        if not 2 <= len(node.input) <= 3 or any(name not in weights for name in node.input[1:]):
            yield f"{node.op_type} has a computed step or zero point; they must be constants"
            continue
        step = numpy_helper.to_array(weights[node.input[1]])
        if not (step > 0).all():
            yield f"{node.op_type} has a step that is not above 0"
        if step.size != 1 and node.input[0] not in weights:
            yield f"{node.op_type} has {step.size} steps for an input, expected one"


def _run_checker(model: onnx.ModelProto) -> Iterator[str]:
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError, ValueError) as error:
        yield f"onnx.checker: {_shorten(error)}"


def _check_shapes(model: onnx.ModelProto, caps: Caps) -> Iterator[str]:
    """Infers shapes again: the file's own value_info is not trusted."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    try:
        inferred = shape_inference.infer_shapes(
            bare, check_type=True, strict_mode=True, data_prop=True
        ).graph
    except shape_inference.InferenceError as error:
        yield f"its shapes cannot be inferred: {_shorten(error)}"
        return
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        tensor = value.type.tensor_type
        if (kind := _type_name(tensor.elem_type)) not in DTYPES:
            yield f"tensor {value.name!r} is of type {kind}, not one of {', '.join(DTYPES)}"
        sizes = [
            axis.dim_value if axis.HasField("dim_value") else None for axis in tensor.shape.dim
        ]
        elements = math.prod(size for size in sizes if size is not None)
        if None in sizes[1:]:
            yield f"tensor {value.name!r} has a free axis other than the first"
        elif elements > (cap := caps.row if None in sizes else caps.elements):
            per = " a row" if None in sizes else ""
            yield f"tensor {value.name!r} has {elements} elements{per}, over the cap of {cap}"


def _check_interface(model: onnx.ModelProto, graph: Graph) -> Iterator[str]:
    opsets = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if opsets != [graph.opset]:
        yield f"opset {opsets}, but the manifest says {graph.opset}"
    for side, values, tensors in (
        ("input", model.graph.input, graph.inputs),
        ("output", model.graph.output, graph.outputs),
    ):
        actual = {v.name: v for v in values}
        declared = {t.name: t for t in tensors}
        if set(actual) != set(declared):
            names = ", ".join(sorted(declared))
            yield f"{side}s {', '.join(sorted(actual))}, but the manifest says {names}"
            continue
        for name, tensor in declared.items():
            yield from _check_tensor(f"{side} {name!r}", actual[name], tensor)


def _check_parity(model: onnx.ModelProto, graph: Graph) -> Iterator[str]:
    """Only a quantized graph may differ more from its source network; its card reports the cost."""
    rounded = any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    if graph.parity.max_abs_error > TOLERANCE and not rounded:
        error = f"parity.max_abs_error is {graph.parity.max_abs_error:.2g}"
        yield f"{error}, over {TOLERANCE:.0e}, and it is not quantized"


def _check_tensor(label: str, value: onnx.ValueInfoProto, tensor: Tensor) -> Iterator[str]:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type != onnx.TensorProto.FLOAT:
        yield f"{label} is not a float32 tensor"
        return
    # The exporter may name a free axis as it likes; only that it is free is checked.
    shape = [d.dim_value if d.HasField("dim_value") else "free" for d in kind.shape.dim]
    declared = ["free" if isinstance(axis, str) else axis for axis in tensor.shape]
    if shape != declared:
        yield f"{label} has shape {shape}, but the manifest says {declared}"


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
