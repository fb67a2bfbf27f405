"""The gate admits graphs that match their manifest, and refuses the rest before it is written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from pydantic import ValidationError

from skills_store.admission import contract, gate
from skills_store.disk.blobs import describe
from skills_store.errors import GateRefusal
from skills_store.manifest import Manifest
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store
from skills_store.version import Version
from tests import tiny
from tests.skills_store.admission.inadmissible import rounding


def test_tiny_graphs_are_admitted() -> None:
    gate.admit("policy", tiny.policy(), tiny.POLICY)
    gate.admit("encoder", tiny.encoder(), tiny.ENCODER)
    gate.admit("style", tiny.style(), tiny.STYLE)
    gate.admit("controller", tiny.controller(), tiny.CONTROLLER)


def test_a_graph_at_the_cap_of_nodes_runs(tmp_path: Path) -> None:
    """The runtime can run the largest graph that the gate admits."""
    model = onnx.load_model_from_string(tiny.policy())
    names = [
        "targets0",
        *(f"x{i}" for i in range(gate.CAPS.nodes - len(model.graph.node) - 1)),
        "targets",
    ]
    model.graph.node[-1].output[0] = names[0]
    model.graph.node.extend(helper.make_node("Tanh", [a], [b]) for a, b in pairwise(names))
    assert len(model.graph.node) == gate.CAPS.nodes
    store = Store(tmp_path / "store")
    store.publish(
        tiny.skills_manifest(), tiny.skills_files() | {"policy.onnx": model.SerializeToString()}
    )
    library = SkillLibrary.open(store, "humanoid")
    assert library.act(np.zeros((1, tiny.STATE)), np.ones((1, tiny.LATENT))).shape == (
        1,
        len(tiny.JOINTS),
    )


def test_bundled_graphs_pass_the_gate() -> None:
    bundled = Store(BUNDLED)
    for version in (bundled.resolve(name) for name in bundled.names()):
        for graph in version.manifest.graphs.values():
            gate.admit(graph.file, bundled.read(version, graph.file), graph)


def test_graph_without_a_parity_report_is_refused() -> None:
    plain = tiny.skills_manifest().model_dump(mode="json")
    for parity in (
        None,
        {"max_abs_error": 0.0, "rows": 0, "batch_sizes": [1]},
        {"max_abs_error": 1.0, "rows": 1},
    ):
        with pytest.raises(ValidationError, match="parity"):
            Manifest.model_validate(
                plain | {"graphs": {"policy": plain["graphs"]["policy"] | {"parity": parity}}}
            )


def test_large_parity_error_is_admitted_only_if_quantized() -> None:
    far = tiny.POLICY.model_copy(
        update={"parity": tiny.POLICY.parity.model_copy(update={"max_abs_error": 0.02})}
    )
    with pytest.raises(
        GateRefusal, match=r"max_abs_error is 0\.02, over 1e-05, and it is not quantized"
    ):
        gate.admit("policy", tiny.policy(), far)
    model = onnx.load_model_from_string(tiny.policy())
    rounding(0.01)(model)
    gate.admit("policy", model.SerializeToString(), far)


def test_contract_names_every_breach() -> None:
    manifest = tiny.skills_manifest()
    assert contract.find_breaches(manifest) == []
    spoiled = manifest.model_copy(
        update={
            "latent": manifest.latent.model_copy(update={"dim": 9}),
            "character": manifest.character.model_copy(update={"kp": (1.0,)}),
        }
    )
    text = " | ".join(contract.find_breaches(spoiled))
    for part in (
        "character.kp is 1 wide",
        "policy.z is 8 wide, but latent.dim is 9",
        "encoder.z",
        "clip 'walk'",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("card.survival", float("nan")),
        ("card.deep", {"er": [1, float("inf")]}),
        ("character.kp", [float("nan")] * len(tiny.JOINTS)),
        ("character.control_dt", float("inf")),
        ("card.survival", 10**400),
        ("card.deep", {"er": [2**63]}),
    ],
)
def test_foreign_manifest_with_invalid_number_is_refused(
    tmp_path: Path, path: str, value: object
) -> None:
    """`import` and `push` keep a manifest's bytes, and JSON readers disagree about NaN."""
    plain = tiny.skills_manifest().model_dump(mode="json")
    plain["files"] = {
        name: describe(data).model_dump() for name, data in tiny.skills_files(0).items()
    }
    section, key = path.split(".")
    plain[section][key] = value
    with pytest.raises(GateRefusal, match="not plain JSON"):
        Store(tmp_path).adopt(json.dumps(plain).encode(), tiny.skills_files(0))
    assert Store(tmp_path).names() == ()


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ({"licence": " "}, "licence is empty"),
        ({"licence": "MIT\x1b[2J"}, "licence is 'MIT\\x1b[2J', which is not plain text"),
    ],
)
def test_licence_that_is_empty_or_not_plain_text_is_a_breach(
    update: dict[str, str], reason: str
) -> None:
    assert reason in contract.find_breaches(tiny.skills_manifest().model_copy(update=update))[0]


@pytest.mark.parametrize("value", ["3", True, None])
def test_foreign_manifest_with_a_non_number_gain_is_refused(tmp_path: Path, value: object) -> None:
    plain = tiny.skills_manifest().model_dump(mode="json")
    plain["character"]["kp"][0] = value
    with pytest.raises(GateRefusal, match=r"character\.kp\.0.*number"):
        Store(tmp_path).adopt(json.dumps(plain).encode(), tiny.skills_files(0))


def test_negative_damping_is_a_contract_breach() -> None:
    manifest = tiny.skills_manifest()
    body = manifest.character.model_copy(update={"kd": tuple(-1.0 for _ in tiny.JOINTS)})
    assert contract.find_breaches(manifest.model_copy(update={"character": body})) == [
        "character.kd has values below 0"
    ]


def test_each_drive_needs_one_value_per_joint() -> None:
    manifest = tiny.skills_manifest()
    for key in contract.DRIVES:
        body = manifest.character.model_copy(update={key: (1.0,)})
        (reason,) = contract.find_breaches(manifest.model_copy(update={"character": body}))
        assert (
            reason == f"character.{key} is 1 wide, but the character has {len(tiny.JOINTS)} joints"
        )


def test_memory_graph_width_must_match_the_controller_goal() -> None:
    parent = Version("humanoid", 1, "sha256:" + 64 * "0", datetime.now(UTC), tiny.skills_manifest())
    manifest = tiny.machine_manifest(parent)
    assert contract.find_breaches(manifest) == []
    narrow = tiny.graph("memory.onnx", {"state": (tiny.STATE,), "goal": (2,)}, {"next_goal": (1,)})
    graphs = {"controller": tiny.CONTROLLER, "memory": narrow}
    assert contract.find_breaches(manifest.model_copy(update={"graphs": graphs})) == [
        "memory.goal is 2 wide, but the controller's is 3",
        "memory.next_goal is 1 wide, but the controller's is 3",
    ]
    skills = tiny.skills_manifest()
    mixed = skills.model_copy(update={"graphs": {**skills.graphs, "memory": tiny.MEMORY}})
    assert contract.find_breaches(mixed) == [
        "graph 'memory' is of controllers, and its kind is 'skills'"
    ]


def test_graph_with_other_tensor_names_is_a_breach() -> None:
    manifest = tiny.skills_manifest()
    swapped = manifest.model_copy(
        update={"graphs": {"policy": tiny.ENCODER, "encoder": tiny.ENCODER}}
    )
    assert contract.find_breaches(swapped) == [
        "graph 'policy' has inputs window; it needs state, z",
        "graph 'policy' has outputs z; it needs targets",
    ]
