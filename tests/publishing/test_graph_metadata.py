"""Metadata of a published graph matches its manifest and does not change its outputs."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort

from pretrain.publishing.graph_metadata import with_metadata
from skills_store.contract_digest import compute_contract_digest
from skills_store.manifest import Action
from tests import tiny


def read_metadata(graph: bytes) -> dict[str, str]:
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return session.get_modelmeta().custom_metadata_map


def test_each_graph_names_body_layout_and_contract() -> None:
    joints = len(tiny.JOINTS)
    action = Action(offset=(0.1,) * joints, scale=(0.5,) * joints, std=(0.05,) * joints)
    manifest = tiny.skills_manifest().model_copy(update={"action": action})
    described = with_metadata(manifest, tiny.skills_files())
    for file in ("policy.onnx", "encoder.onnx"):
        facts = read_metadata(described[file])
        assert facts["joint_names"].split(",") == list(tiny.JOINTS)
        # of the drive plus passive
        assert [float(x) for x in facts["joint_damping"].split(",")] == [12.0] * joints
        assert [float(x) for x in facts["default_joint_pos"].split(",")] == [0.1] * joints
        assert facts["contract_digest"] == compute_contract_digest(manifest)
    layout = read_metadata(described["policy.onnx"])["state_layout"].split(",")
    assert layout[1] == "root_rot:3:7"


def test_metadata_does_not_change_outputs() -> None:
    manifest = tiny.skills_manifest()
    rng = np.random.default_rng(0)
    feed = {
        "state": rng.standard_normal((3, tiny.STATE), np.float32),
        "z": rng.standard_normal((3, tiny.LATENT), np.float32),
    }
    outputs = [
        ort.InferenceSession(files["policy.onnx"], providers=["CPUExecutionProvider"]).run(
            None, feed
        )[0]
        for files in (tiny.skills_files(), with_metadata(manifest, tiny.skills_files()))
    ]
    np.testing.assert_array_equal(outputs[0], outputs[1])
