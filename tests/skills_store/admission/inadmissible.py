"""Models that the gate refuses: a change to a valid policy, and a pattern of the refusal.

The gate admits only what is on its lists, so one example of each other kind is enough. All are
harmless: a test loads each with onnx.checker and ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from skills_store.admission.gate import CAPS
from tests import tiny

Change = Callable[[onnx.ModelProto], None]
WIDTH = tiny.STATE + tiny.LATENT


def plain(model: onnx.ModelProto) -> None:
    """Nothing is changed."""


def external(model: onnx.ModelProto) -> None:
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")


def external_as_well(model: onnx.ModelProto) -> None:
    """The weight is in the file, which also names external data for it."""
    model.graph.initializer[0].external_data.add(key="location", value="weights.bin")


def external_constant(model: onnx.ModelProto) -> None:
    weight = TensorProto(
        name="c", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL
    )
    weight.external_data.add(key="location", value="weights.bin")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=weight))


def _sparse() -> onnx.SparseTensorProto:
    """Four numbers, one of which is not 0."""
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [2])
    return helper.make_sparse_tensor(values, indices, [4])


def sparse(model: onnx.ModelProto) -> None:
    model.graph.sparse_initializer.append(_sparse())


def sparse_constant(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Constant", [], ["c"], sparse_value=_sparse()))


def annotated(model: onnx.ModelProto) -> None:
    model.graph.quantization_annotation.add(tensor_name="w0")


def foreign(kind: str, domain: str, **attributes: Any) -> Change:
    def change(model: onnx.ModelProto) -> None:
        model.graph.node.append(
            helper.make_node(kind, ["state"], ["x"], domain=domain, **attributes)
        )
        model.opset_import.append(helper.make_opsetid(domain, 1))

    return change


def appended(kind: str, *inputs: str, **attributes: Any) -> Change:
    return lambda model: model.graph.node.append(
        helper.make_node(kind, inputs, ["x"], **attributes)
    )


def function(model: onnx.ModelProto) -> None:
    """Twice the state, by a model-local function."""
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    opsets = [helper.make_opsetid("", tiny.OPSET)]
    model.functions.append(helper.make_function("local", "Double", ["a"], ["b"], body, opsets))
    foreign("Double", "local")(model)


def _inner(*nodes: onnx.NodeProto, **shapes: tuple[int | str, ...]) -> onnx.GraphProto:
    """A graph with `nodes` whose last output is its own; `shapes` are those of its inputs."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    output = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), "inner", inputs, [output])


def _copy(name: str = "state") -> onnx.NodeProto:
    return helper.make_node("Identity", [name], ["y"])


def branch(model: onnx.ModelProto) -> None:
    constants(model, yes=np.array(True))
    then = _inner(_copy())
    otherwise = _inner(_copy())
    model.graph.node.append(
        helper.make_node("If", ["yes"], ["x"], then_branch=then, else_branch=otherwise)
    )


def loop(model: onnx.ModelProto) -> None:
    """The state, copied once."""
    constants(model, once=np.array(1), yes=np.array(True))
    counter = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    condition = [
        helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("before", "after")
    ]
    carried = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("v", "y")]
    nodes = [helper.make_node("Identity", ["before"], ["after"]), _copy("v")]
    body = helper.make_graph(
        nodes, "body", [counter, condition[0], carried[0]], [condition[1], carried[1]]
    )
    model.graph.node.append(helper.make_node("Loop", ["once", "yes", "state"], ["x"], body=body))


def scan(model: onnx.ModelProto) -> None:
    body = _inner(_copy("row"), row=(tiny.STATE,))
    model.graph.node.append(
        helper.make_node("Scan", ["state"], ["x"], body=body, num_scan_inputs=1)
    )


def function_attribute(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(
        name="axis", ref_attr_name="outer", type=onnx.AttributeProto.INT
    )


def training(model: onnx.ModelProto) -> None:
    model.training_info.add().algorithm.CopyFrom(_inner(_copy()))


def copies(count: int) -> Change:
    """Append `count` nodes."""
    return lambda model: model.graph.node.extend(
        helper.make_node("Identity", ["state"], [f"x{i}"]) for i in range(count)
    )


def one_node_too_many(model: onnx.ModelProto) -> None:
    copies(CAPS.nodes + 1 - len(model.graph.node))(model)


def weight(values: np.ndarray) -> Change:
    return lambda model: model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w0"))


def not_finite(value: float, kind: type = np.float32) -> Change:
    values = np.zeros((WIDTH, 16), kind)
    values[3, 3] = value
    return weight(values)


def infinite_constant(model: onnx.ModelProto) -> None:
    held = numpy_helper.from_array(np.array([np.inf], np.float32), "c")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=held))


def attribute(name: str, value: object) -> Change:
    return lambda model: model.graph.node[1].attribute.append(helper.make_attribute(name, value))


def fewer_columns(model: onnx.ModelProto) -> None:
    """The weight declares one column less than it has."""
    model.graph.initializer[0].dims[1] -= 1


def strings(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(
        TensorProto(name="s", data_type=TensorProto.STRING, dims=[1], string_data=[b"x"])
    )


def unknown_type(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_type = max(TensorProto.DataType.values()) + 1


def constants(model: onnx.ModelProto, **values: object) -> None:
    for name, value in values.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def constant_of_shape(model: onnx.ModelProto) -> None:
    constants(model, size=np.array([4]))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["size"], ["x"]))


def expanded(elements: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        constants(model, one=np.ones(1, np.float32), size=np.array([elements]))
        model.graph.node.append(helper.make_node("Expand", ["one", "size"], ["x"]))

    return change


def computed_expand(model: onnx.ModelProto) -> None:
    """The size is computed as 2 times 2."""
    constants(model, one=np.ones(1, np.float32), two=np.array([2]))
    model.graph.node.append(helper.make_node("Mul", ["two", "two"], ["size"]))
    model.graph.node.append(helper.make_node("Expand", ["one", "size"], ["x"]))


def outer_sum(rows: int, columns: int) -> Change:
    """(rows, 1) + (1, columns), out of two small weights."""

    def change(model: onnx.ModelProto) -> None:
        constants(
            model, column=np.ones((rows, 1), np.float32), row=np.ones((1, columns), np.float32)
        )
        model.graph.node.append(helper.make_node("Add", ["column", "row"], ["x"]))

    return change


def other_shape(model: onnx.ModelProto) -> None:
    """Computed as (4, 4) and declared as (4, 1)."""
    outer_sum(4, 4)(model)
    model.graph.value_info.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1]))


def rows_by_rows(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Transpose", ["state"], ["turned"]))
    model.graph.node.append(helper.make_node("MatMul", ["state", "turned"], ["x"]))


def cast_to_text(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Cast", ["state"], ["x"], to=TensorProto.STRING))


def declared(sizes: list[int | str]) -> Change:
    def change(model: onnx.ModelProto) -> None:
        model.graph.input[0].CopyFrom(
            helper.make_tensor_value_info("state", TensorProto.FLOAT, sizes)
        )

    return change


def sequence(model: onnx.ModelProto) -> None:
    model.graph.input[0].CopyFrom(
        helper.make_tensor_sequence_value_info("state", TensorProto.FLOAT, ["B", tiny.STATE])
    )


def other_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[-1].output[0] = "actions"


def other_width(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 27


def fixed_batch(model: onnx.ModelProto) -> None:
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1


def second_output(model: onnx.ModelProto) -> None:
    model.graph.output.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, ["B", 16]))


def input_with_a_value(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(
        numpy_helper.from_array(np.zeros((1, tiny.LATENT), np.float32), "z")
    )


def opset(*versions: int) -> Change:
    def change(model: onnx.ModelProto) -> None:
        del model.opset_import[:]
        model.opset_import.extend(helper.make_opsetid("", version) for version in versions)

    return change


def later_file(model: onnx.ModelProto) -> None:
    model.ir_version = onnx.IR_VERSION + 1


def dangling(model: onnx.ModelProto) -> None:
    model.graph.node[-1].input[0] = "nowhere"


def cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "a"


def written_twice(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Identity", ["state"], ["h"]))


def rounding(step: float | list[float] | None, **attributes: Any) -> Change:
    """The hidden layer rounded to int8, by `step`; None: by an input."""

    def change(model: onnx.ModelProto) -> None:
        if step is not None:
            model.graph.initializer.append(
                numpy_helper.from_array(np.array(step, np.float32), "step")
            )
        rounded = helper.make_node(
            "QuantizeLinear", ["a", "step" if step is not None else "z"], ["q"], **attributes
        )
        back = helper.make_node(
            "DequantizeLinear", ["q", "step" if step is not None else "z"], ["r"]
        )
        for node in (rounded, back):
            model.graph.node.insert(len(model.graph.node) - 1, node)
        model.graph.node[-1].input[0] = "r"

    return change


INADMISSIBLE: dict[str, tuple[Change, str]] = {
    "external data": (external, "outside the file"),
    "external data beside its own": (external_as_well, "outside the file"),
    "external data of a constant": (external_constant, "outside the file"),
    "sparse weights": (sparse, "sparse"),
    "a sparse constant": (sparse_constant, "sparse"),
    "a weight with an annotation": (annotated, "quantized initializers"),
    "an operator of ONNX Runtime": (
        foreign("Gelu", "com.microsoft"),
        "outside the default domain",
    ),
    "an operator of a custom domain": (
        foreign("Scale", "com.example"),
        "outside the default domain",
    ),
    "a classical model": (
        foreign("Scaler", "ai.onnx.ml", offset=[0.0], scale=[1.0]),
        r"ai\.onnx\.ml\.Scaler is outside the default domain",
    ),
    "an operator that does not exist": (
        appended("Nothing", "state"),
        "Nothing is not on the allow-list",
    ),
    "a function": (function, "1 model-local functions"),
    "a branch": (branch, "If is not on the allow-list"),
    "a loop": (loop, "Loop is not on the allow-list"),
    "a scan": (scan, "Scan is not on the allow-list"),
    "a graph in an attribute": (attribute("more", _inner(_copy())), "carries a subgraph"),
    "graphs in an attribute": (
        attribute("more", [_inner(_copy()), _inner(_copy())]),
        "carries a subgraph",
    ),
    "an attribute of a function": (function_attribute, "a function's attribute"),
    "training information": (training, "training information"),
    "randomness": (appended("RandomNormal", shape=[1]), "RandomNormal is not on the allow-list"),
    "a sequence of tensors": (
        appended("SequenceConstruct", "state"),
        "SequenceConstruct is not on the allow-list",
    ),
    "a node above the cap": (one_node_too_many, "10001 nodes, over the cap of 10000"),
    "a weight with NaN": (not_finite(np.nan), "not finite"),
    "an infinite weight": (not_finite(-np.inf), "not finite"),
    "an infinite weight of half precision": (not_finite(np.inf, np.float16), "not finite"),
    "an infinite constant": (infinite_constant, "not finite"),
    "an infinite attribute": (attribute("alpha", float("inf")), "not finite"),
    "an attribute with NaN": (
        attribute("scales", [1.0, float("nan")]),
        "not finite",
    ),
    "a weight of another size than its bytes": (fewer_columns, "cannot be read"),
    "text for weights": (strings, "of type STRING"),
    "weights of no known type": (unknown_type, r"of type number \d+, not one of"),
    "a tensor of a constant size": (
        constant_of_shape,
        "ConstantOfShape is not on the allow-list",
    ),
    "a tensor of a computed size": (computed_expand, "computed by Mul"),
    "rounding by an input": (rounding(None), "has a computed step"),
    "rounding by a step of 0": (rounding(0.0), "a step that is not above 0"),
    "rounding by a negative step": (rounding(-0.1), "a step that is not above 0"),
    "rounding the rows of a batch of three": (
        rounding([0.1, 0.1, 0.1], axis=0),
        "3 steps for an input",
    ),
    "rounding in blocks": (rounding(0.1, block_size=2), "has block_size"),
    "rounding to a type of its own": (
        rounding(0.1, output_dtype=TensorProto.INT8),
        "has output_dtype",
    ),
    "as many columns as rows": (rows_by_rows, "a free axis other than the first"),
    "a tensor of another shape than declared": (other_shape, r"onnx\.checker"),
    "a cast to text": (cast_to_text, "of type STRING"),
    "an input of another width": (declared(["B", tiny.STATE + 1]), r"onnx\.checker|manifest says"),
    "an input with a free second axis": (
        declared(["B", "S"]),
        r"onnx\.checker|free axis|manifest says",
    ),
    "an input without axes": (declared([]), r"onnx\.checker|manifest says"),
    "an input that is a sequence": (sequence, r"onnx\.checker|type|manifest says"),
    "an input with a value of its own": (input_with_a_value, "has a value of its own"),
    "an output by another name": (other_output, "outputs actions, but the manifest says targets"),
    "an output of another width": (other_width, r"onnx\.checker|manifest says"),
    "an output too many": (second_output, "outputs h, targets, but the manifest says targets"),
    "a batch of one": (fixed_batch, r"\[1, 69\], but the manifest says \['free', 69\]"),
    "another opset than declared": (opset(19), r"opset \[19\]"),
    "two opsets at once": (opset(tiny.OPSET, 19), r"onnx\.checker|opset"),
    "an unreleased opset": (opset(onnx.defs.onnx_opset_version() + 1), r"onnx\.checker|opset"),
    "an unreleased file format": (later_file, r"onnx\.checker"),
    "an undefined input": (dangling, r"onnx\.checker"),
    "a cycle": (cycle, r"onnx\.checker"),
    "a tensor written twice": (written_twice, r"onnx\.checker"),
}

# name: (change, cap, count): admitted by a cap of `count`, refused by a cap of one less.
CAPPED: dict[str, tuple[Change, str, int]] = {
    "bytes": (plain, "bytes", len(tiny.policy())),
    "nodes": (copies(20), "nodes", 20 + len(onnx.load_model_from_string(tiny.policy()).graph.node)),
    "weights": (
        plain,
        "initializers",
        len(onnx.load_model_from_string(tiny.policy()).graph.initializer),
    ),
    "numbers of a weight": (plain, "elements", WIDTH * 16),
    "numbers of a small tensor that is expanded": (expanded(2000), "elements", 2000),
    "numbers of a sum of two small tensors": (outer_sum(40, 50), "elements", 2000),
    "numbers in a row": (plain, "row", WIDTH),
}


def changed(change: Change) -> bytes:
    """The bytes of a valid policy after `change`."""
    model = onnx.load_model_from_string(tiny.policy())
    change(model)
    return model.SerializeToString()
