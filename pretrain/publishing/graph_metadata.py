"""Metadata in an ONNX file, for use of the file without its manifest.

The keys joint_names, joint_stiffness, joint_damping, default_joint_pos and action_scale, as
comma-separated lists, are those that Isaac Lab and mjlab write into exported policies; the others
are our own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add

import onnx

from skills_store.contract_digest import compute_contract_digest
from skills_store.graph import Tensor
from skills_store.manifest import Manifest


def with_metadata(manifest: Manifest, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """`files` with the manifest's facts in each graph of `manifest`."""
    facts = describe_body(manifest)
    described = dict(files)
    for graph in manifest.graphs.values():
        layouts = {
            f"{tensor.name}_layout": write_layout(tensor)
            for tensor in graph.inputs
            if tensor.slices
        }
        described[graph.file] = add_metadata(files[graph.file], facts | layouts)
    return described


def describe_body(manifest: Manifest) -> dict[str, str]:
    """Facts of the body and of the version, each as text."""
    body = manifest.character
    facts = {
        "joint_names": ",".join(body.joints),
        "joint_stiffness": write_numbers(body.kp),
        "joint_damping": write_numbers(map(add, body.kd, body.damping)),
        "torque_limit": write_numbers(body.torque_limit),
        "control_dt": f"{body.control_dt:.9g}",
        "contract_digest": compute_contract_digest(manifest),
    }
    if manifest.action is not None:
        facts["default_joint_pos"] = write_numbers(manifest.action.offset)
        facts["action_scale"] = write_numbers(manifest.action.scale)
    if manifest.action is not None and manifest.action.std is not None:
        facts["action_std"] = write_numbers(manifest.action.std)
    return facts


def write_layout(tensor: Tensor) -> str:
    """`root_pos:0:3,root_rot:3:7,...`: the slices of the last axis."""
    return ",".join(f"{part.name}:{part.start}:{part.stop}" for part in tensor.slices)


def write_numbers(values: Iterable[float]) -> str:
    return ",".join(f"{value:.9g}" for value in values)


def add_metadata(graph: bytes, facts: Mapping[str, str]) -> bytes:
    model = onnx.ModelProto.FromString(graph)
    del model.metadata_props[:]
    for key, value in sorted(facts.items()):
        model.metadata_props.add(key=key, value=value)
    return model.SerializeToString(deterministic=True)
