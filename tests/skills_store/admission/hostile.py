"""Files that no gate may let through, each by name: how a good policy is spoiled, and what the refusal has to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests import tiny

Spoil = Callable[[onnx.ModelProto], None]


def external(location: str, *more: tuple[str, str]) -> Spoil:
    def spoil(model: onnx.ModelProto) -> None:
        weight = model.graph.initializer[0]
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), *more):
            weight.external_data.add(key=key, value=value)

    return spoil


def external_in_disguise(model: onnx.ModelProto) -> None:
    """A location, and the flag that says there is none."""
    model.graph.initializer[0].external_data.add(key="location", value="weights.bin")


def external_constant(model: onnx.ModelProto) -> None:
    weight = TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="/etc/passwd")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=weight))


def sparse(model: onnx.ModelProto) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [10**12])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [10**15]))


def sparse_constant(model: onnx.ModelProto) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [0])
    held = helper.make_sparse_tensor(values, indices, [10**15])
    model.graph.node.append(helper.make_node("Constant", [], ["c"], sparse_value=held))


def foreign(kind: str, domain: str, **attributes: Any) -> Spoil:
    def spoil(model: onnx.ModelProto) -> None:
        model.graph.node.append(helper.make_node(kind, ["state"], ["x"], domain=domain, **attributes))
        model.opset_import.append(helper.make_opsetid(domain, 1))

    return spoil


def appended(kind: str, *inputs: str, **attributes: Any) -> Spoil:
    return lambda model: model.graph.node.append(helper.make_node(kind, inputs, ["x"], **attributes))


def function_chain(depth: int) -> Spoil:
    """Each function calls the next: what crashed a runtime that trusted the file."""

    def spoil(model: onnx.ModelProto) -> None:
        opsets = [helper.make_opsetid("", tiny.OPSET), helper.make_opsetid("f", 1)]
        for i in range(depth):
            call = helper.make_node(f"F{i + 1}", ["a"], ["b"], domain="f")
            body = [call if i + 1 < depth else helper.make_node("Identity", ["a"], ["b"])]
            model.functions.append(helper.make_function("f", f"F{i}", ["a"], ["b"], body, opsets))

    return spoil


def _inner() -> onnx.GraphProto:
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    return helper.make_graph([helper.make_node("Identity", ["state"], ["y"])], "g", [], [value])


def hidden_graphs(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("hidden", [_inner(), _inner()]))


def function_attribute(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(name="axis", ref_attr_name="outer", type=onnx.AttributeProto.INT)


def training(model: onnx.ModelProto) -> None:
    model.training_info.add().algorithm.CopyFrom(_inner())


def many_nodes(model: onnx.ModelProto) -> None:
    for i in range(20_000):
        model.graph.node.append(helper.make_node("Identity", ["state"], [f"x{i}"]))


def weight(values: np.ndarray) -> Spoil:
    return lambda model: model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w0"))


def poisoned(value: float, kind: type = np.float32) -> Spoil:
    values = np.zeros((tiny.STATE + tiny.LATENT, 16), kind)
    values[3, 3] = value
    return weight(values)


def poisoned_constant(model: onnx.ModelProto) -> None:
    held = numpy_helper.from_array(np.array([np.inf], np.float32), "c")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=held))


def attribute(name: str, value: object) -> Spoil:
    return lambda model: model.graph.node[1].attribute.append(helper.make_attribute(name, value))


def dims(*sizes: int) -> Spoil:
    def spoil(model: onnx.ModelProto) -> None:
        model.graph.initializer[0].dims[:] = sizes

    return spoil


def strings(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="s", data_type=TensorProto.STRING, dims=[1], string_data=[b"x"]))


def odd_type(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_type = 99


def constants(model: onnx.ModelProto, **values: object) -> None:
    for name, value in values.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))


def huge_expand(model: onnx.ModelProto) -> None:
    constants(model, one=np.ones(1, np.float32), size=np.array([10**12]))
    model.graph.node.append(helper.make_node("Expand", ["one", "size"], ["x"]))


def computed_expand(model: onnx.ModelProto) -> None:
    """The size is in no constant: 10^6 times 10^6."""
    constants(model, one=np.ones(1, np.float32), many=np.array([10**6]))
    model.graph.node.append(helper.make_node("Mul", ["many", "many"], ["size"]))
    model.graph.node.append(helper.make_node("Expand", ["one", "size"], ["x"]))


def huge_product(model: onnx.ModelProto) -> None:
    """(10^5, 1) + (1, 10^5), out of two small weights."""
    constants(model, column=np.ones((10**5, 1), np.float32), row=np.ones((1, 10**5), np.float32))
    model.graph.node.append(helper.make_node("Add", ["column", "row"], ["x"]))


def rows_by_rows(model: onnx.ModelProto) -> None:
    """A batch of a million would take a million squared."""
    model.graph.node.append(helper.make_node("Transpose", ["state"], ["turned"]))
    model.graph.node.append(helper.make_node("MatMul", ["state", "turned"], ["x"]))


def lying_shape(model: onnx.ModelProto) -> None:
    """What is inside, by its own word, is smaller than it is."""
    huge_product(model)
    model.graph.value_info.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1]))


def cast_to_text(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Cast", ["state"], ["x"], to=TensorProto.STRING))


def declared(sizes: list[int | str]) -> Spoil:
    def spoil(model: onnx.ModelProto) -> None:
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info("state", TensorProto.FLOAT, sizes))

    return spoil


def sequence(model: onnx.ModelProto) -> None:
    model.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("state", TensorProto.FLOAT, ["B", tiny.STATE]))


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
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, tiny.LATENT), np.float32), "z"))


def opset(*versions: int) -> Spoil:
    def spoil(model: onnx.ModelProto) -> None:
        del model.opset_import[:]
        model.opset_import.extend(helper.make_opsetid("", version) for version in versions)

    return spoil


def later_file(model: onnx.ModelProto) -> None:
    model.ir_version = 9999


def dangling(model: onnx.ModelProto) -> None:
    model.graph.node[-1].input[0] = "nowhere"


def circle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "a"


def written_twice(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Identity", ["state"], ["h"]))


def rounding(step: float | list[float] | None, **attributes: Any) -> Spoil:
    """The hidden layer rounded to int8, by `step`; None: by what the input says."""

    def spoil(model: onnx.ModelProto) -> None:
        if step is not None:
            model.graph.initializer.append(numpy_helper.from_array(np.array(step, np.float32), "step"))
        rounded = helper.make_node("QuantizeLinear", ["a", "step" if step is not None else "z"], ["q"], **attributes)
        back = helper.make_node("DequantizeLinear", ["q", "step" if step is not None else "z"], ["r"])
        for node in (rounded, back):
            model.graph.node.insert(len(model.graph.node) - 1, node)
        model.graph.node[-1].input[0] = "r"

    return spoil


HOSTILE: dict[str, tuple[Spoil, str]] = {
    "external data above its folder": (external("../../etc/passwd"), "outside the file"),
    "external data at an absolute path": (external("/etc/passwd"), "outside the file"),
    "external data behind a symbolic link": (external("link/weights.bin"), "outside the file"),
    "external data behind a hard link": (external("weights.bin", ("offset", "0")), "outside the file"),
    "external data at a memory address": (external("*/_ORT_MEM_ADDR_/*", ("offset", "4096")), "outside the file"),
    "external data without a place": (external(""), "outside the file"),
    "external data that claims to be none": (external_in_disguise, "outside the file"),
    "external data of a constant": (external_constant, "outside the file"),
    "sparse weights": (sparse, "sparse"),
    "a sparse constant": (sparse_constant, "sparse"),
    "a compiled blob": (foreign("EPContext", "com.microsoft", embed_mode=1), "outside the default domain"),
    "an operator of the runtime's own": (foreign("Inverse", "com.microsoft"), "outside the default domain"),
    "an operator of someone's own": (foreign("Evil", "com.example"), "outside the default domain"),
    "a classical model": (foreign("TreeEnsembleRegressor", "ai.onnx.ml"), "outside the default domain"),
    "an operator that is none": (appended("Evil", "state"), "not on the allow-list"),
    "a function": (function_chain(1), "1 model-local functions"),
    "3,000 functions deep": (function_chain(3000), "3000 model-local functions"),
    "a branch": (appended("If", "c", then_branch=_inner(), else_branch=_inner()), "If is not on the allow-list"),
    "a loop": (appended("Loop", "", "c", body=_inner()), "Loop is not on the allow-list"),
    "a scan": (appended("Scan", "state", body=_inner(), num_scan_inputs=1), "Scan is not on the allow-list"),
    "a graph in an attribute": (attribute("hidden", _inner()), "carries a subgraph"),
    "graphs in an attribute": (hidden_graphs, "carries a subgraph"),
    "an attribute of a function": (function_attribute, "a function's attribute"),
    "training information": (training, "training information"),
    "randomness": (appended("RandomNormal", shape=[1]), "not on the allow-list"),
    "a sequence of tensors": (appended("SequenceConstruct", "state"), "not on the allow-list"),
    "20,000 nodes": (many_nodes, "over the cap"),
    "a weight that is not a number": (poisoned(np.nan), "not finite"),
    "an infinite weight": (poisoned(-np.inf), "not finite"),
    "an infinite weight of half precision": (poisoned(np.inf, np.float16), "not finite"),
    "an infinite constant": (poisoned_constant, "not finite"),
    "an infinite attribute": (attribute("alpha", float("inf")), "not finite"),
    "an attribute with a number that is none": (attribute("scales", [1.0, float("nan")]), "not finite"),
    "a weight of 10^18 elements": (dims(10**9, 10**9), "cannot be read"),
    "a weight of negative size": (dims(-1, 16), "Negative dimension"),
    "a weight larger than its bytes": (dims(tiny.STATE + tiny.LATENT, 17), "cannot be read"),
    "text for weights": (strings, "of type STRING"),
    "weights of no known type": (odd_type, "of type number 99"),
    "a tensor as large as a number says": (appended("ConstantOfShape", "size"), "not on the allow-list"),
    "a small tensor made huge": (huge_expand, "over the cap"),
    "a small tensor made huge by arithmetic": (computed_expand, "as large as Mul says"),
    "two small tensors made huge": (huge_product, "10000000000 elements, over the cap"),
    "rounding by what the input says": (rounding(None), "rounds by what is no constant"),
    "rounding by nothing": (rounding(0.0), "a step that is not above 0"),
    "rounding backwards": (rounding(-0.1), "a step that is not above 0"),
    "rounding the rows of a batch of three": (rounding([0.1, 0.1, 0.1], axis=0), "3 steps for what is no weight"),
    "rounding in blocks": (rounding(0.1, block_size=2**40), "has block_size"),
    "rounding to a type of its own": (rounding(0.1, output_dtype=17), "has output_dtype"),
    "as many columns as rows": (rows_by_rows, "a free axis other than the first"),
    "a huge tensor that says it is small": (lying_shape, r"onnx\.checker|over the cap"),
    "numbers made text": (cast_to_text, "of type STRING"),
    "an input of 10^9 numbers": (declared(["B", 10**9]), r"onnx\.checker|over the cap"),
    "an input of a size of its own": (declared(["B", "S"]), r"onnx\.checker|free axis|manifest says"),
    "an input without axes": (declared([]), r"onnx\.checker|manifest says"),
    "an input that is a sequence": (sequence, r"onnx\.checker|type|manifest says"),
    "an input with a value of its own": (input_with_a_value, "has a value of its own"),
    "an output by another name": (other_output, "outputs actions, but the manifest says targets"),
    "an output of another width": (other_width, r"onnx\.checker|manifest says"),
    "an output too many": (second_output, "outputs h, targets, but the manifest says targets"),
    "a batch of one": (fixed_batch, r"\[1, 69\], but the manifest says \['free', 69\]"),
    "another opset than declared": (opset(19), r"opset \[19\]"),
    "two opsets at once": (opset(tiny.OPSET, 19), r"onnx\.checker|opset"),
    "an opset that is not yet": (opset(9999), r"onnx\.checker|opset"),
    "a file format that is not yet": (later_file, r"onnx\.checker"),
    "an input from nowhere": (dangling, r"onnx\.checker"),
    "a circle": (circle, r"onnx\.checker"),
    "a tensor written twice": (written_twice, r"onnx\.checker"),
}


def spoiled(name: str) -> bytes:
    model = onnx.load_model_from_string(tiny.policy())
    HOSTILE[name][0](model)
    return model.SerializeToString()
