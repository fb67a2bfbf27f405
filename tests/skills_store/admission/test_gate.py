"""The gate admits plain arithmetic that does what its manifest says, and refuses the rest before it is on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from skills_store.admission import contract, gate
from skills_store.errors import GateRefused
from skills_store.store import Store
from tests import tiny


def test_tiny_graphs_are_admitted() -> None:
    gate.admit("policy", tiny.policy(), tiny.POLICY)
    gate.admit("encoder", tiny.encoder(), tiny.ENCODER)
    gate.admit("style", tiny.style(), tiny.STYLE)
    gate.admit("controller", tiny.controller(), tiny.CONTROLLER)


def external(model: onnx.ModelProto) -> None:
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/passwd")


def external_constant(model: onnx.ModelProto) -> None:
    weight = TensorProto(name="c", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="/etc/passwd")
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=weight))


def custom_domain(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(helper.make_opsetid("com.example", 1))


def native_blob(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("EPContext", ["state"], ["x"], domain="com.microsoft", embed_mode=1))


def functions(model: onnx.ModelProto) -> None:
    body = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function("f", "F", ["a"], ["b"], body, [helper.make_opsetid("", tiny.OPSET)]))


def branch(model: onnx.ModelProto) -> None:
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    inner = helper.make_graph([helper.make_node("Identity", ["state"], ["y"])], "g", [], [value])
    model.graph.node.append(helper.make_node("If", ["c"], ["r"], then_branch=inner, else_branch=inner))


def smuggled_subgraph(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("hidden", helper.make_graph([], "g", [], [])))


def randomness(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("RandomNormal", [], ["r"], shape=[1]))


def not_a_number(model: onnx.ModelProto) -> None:
    weight = numpy_helper.to_array(model.graph.initializer[0]).copy()
    weight[3, 3] = np.nan
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w0"))


def infinite_attribute(model: onnx.ModelProto) -> None:
    model.graph.node[1].attribute.append(helper.make_attribute("alpha", float("inf")))


def lying_dims(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[:] = [10**9, 10**9]


def text(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="s", data_type=TensorProto.STRING, dims=[1], string_data=[b"x"]))


def other_name(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[-1].output[0] = "actions"


def other_width(model: onnx.ModelProto) -> None:
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 27


def fixed_batch(model: onnx.ModelProto) -> None:
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 1


def other_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 19


def dangling(model: onnx.ModelProto) -> None:
    model.graph.node[-1].input[0] = "nowhere"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (external, "outside the file"),
        (external_constant, "outside the file"),
        (custom_domain, "outside the default domain"),
        (native_blob, "outside the default domain"),
        (functions, "model-local functions"),
        (branch, "operator If is not on the allow-list"),
        (smuggled_subgraph, "carries a subgraph"),
        (randomness, "not on the allow-list"),
        (not_a_number, "not finite"),
        (infinite_attribute, "not finite"),
        (lying_dims, "cannot be read"),
        (text, "of type STRING"),
        (other_name, "outputs actions, but the manifest says targets"),
        (other_width, r"onnx\.checker|manifest says"),
        (fixed_batch, r"\[1, 69\], but the manifest says \['free', 69\]"),
        (other_opset, r"opset \[19\]"),
        (dangling, r"onnx\.checker"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_refused_and_nothing_published(tmp_path: Path, spoil: Callable[[onnx.ModelProto], None], reason: str) -> None:
    model = onnx.load_model_from_string(tiny.policy())
    spoil(model)
    store = Store(tmp_path / "store")
    with pytest.raises(GateRefused, match=reason):
        store.publish(tiny.skills_manifest(), tiny.skills_files() | {"policy.onnx": model.SerializeToString()})
    assert not store.root.exists()


@pytest.mark.parametrize("data", [b"", b"not onnx", b"\x00" * 64, b"PK\x03\x04" + b"x" * 100])
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(GateRefused, match="not an ONNX file"):
        gate.admit("policy", data, tiny.POLICY)


def test_truncated_anywhere_is_refused() -> None:
    data = tiny.policy()
    for length in range(1, len(data), 331):
        with pytest.raises(GateRefused):
            gate.admit("policy", data[:length], tiny.POLICY)


def test_over_the_size_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_BYTES", 100)
    with pytest.raises(GateRefused, match="over the cap"):
        gate.admit("policy", tiny.policy(), tiny.POLICY)


def test_contract_names_every_breach() -> None:
    manifest = tiny.skills_manifest()
    assert contract.breaches(manifest) == []
    spoiled = manifest.model_copy(
        update={
            "latent": manifest.latent.model_copy(update={"dim": 9}),
            "character": manifest.character.model_copy(update={"kp": (1.0,)}),
        }
    )
    text = " | ".join(contract.breaches(spoiled))
    for part in ("character.kp is 1 wide", "policy.z is 8 wide, but latent.dim is 9", "encoder.z", "clip 'walk'"):
        assert part in text


def test_contract_needs_the_agreed_names() -> None:
    manifest = tiny.skills_manifest()
    swapped = manifest.model_copy(update={"graphs": {"policy": tiny.ENCODER, "encoder": tiny.ENCODER}})
    assert contract.breaches(swapped) == [
        "graph 'policy' has inputs window; it needs state, z",
        "graph 'policy' has outputs z; it needs targets",
    ]
