"""Checks that the graphs of a version fit each other and their body. Reads manifests only, never an
ONNX file.
"""

from __future__ import annotations

from collections.abc import Iterator

from skills_store.graph import Graph, Tensor
from skills_store.manifest import OWN_OBSERVATIONS, Manifest

# graph: (inputs, outputs). Other graphs may name their tensors freely.
GRAPHS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "policy": (("state", "z"), ("targets",)),
    "encoder": (("window",), ("z",)),
    "style": (("window",), ("style",)),
    "controller": (("state", "goal"), ("z",)),
    "memory": (("state", "goal"), ("next_goal",)),
}
DRIVES = ("kp", "kd", "damping", "torque_limit")
RANK = {"state": 2, "z": 2, "goal": 2, "next_goal": 2, "targets": 2, "window": 3, "style": 1}


def find_breaches(manifest: Manifest, parent: Manifest | None = None) -> list[str]:
    """Every violated rule, as text; empty if the manifest may be published."""
    named = []
    for name, graph in manifest.graphs.items():
        named += _check_interface(name, graph)
    named += _check_printable(manifest)
    # Widths are compared only if the tensors exist.
    return named or [
        *_check_body(manifest),
        *_check_latent(manifest),
        *_check_state(manifest),
        *_check_memory(manifest),
        *_check_parent(manifest, parent),
    ]


def _check_interface(name: str, graph: Graph) -> Iterator[str]:
    inputs, outputs = GRAPHS.get(name, (None, None))
    for side, expected, tensors in (
        ("inputs", inputs, graph.inputs),
        ("outputs", outputs, graph.outputs),
    ):
        names = tuple(t.name for t in tensors)
        if expected is not None and set(names) != set(expected):
            shown = ", ".join(names) or "none"
            yield f"graph {name!r} has {side} {shown}; it needs {', '.join(expected)}"
        for tensor in tensors:
            yield from _check_shape(name, tensor)


def _check_shape(graph: str, tensor: Tensor) -> Iterator[str]:
    rank = RANK.get(tensor.name, len(tensor.shape))
    free = [isinstance(axis, str) for axis in tensor.shape]
    if len(free) != rank or free[:1] != [True] or any(free[1:]):
        problem = f"{graph}.{tensor.name} has shape {list(tensor.shape)}"
        yield f"{problem}; it needs a free first axis and {rank} axes in all"


def _check_printable(manifest: Manifest) -> Iterator[str]:
    """Text that a terminal shows must have no control characters."""
    body = manifest.character
    lineage = manifest.lineage
    shown = {
        "licence": manifest.licence,
        "character.name": body.name,
        "lineage.hardware": lineage.hardware,
    }
    shown |= {f"character.joints[{i}]": joint for i, joint in enumerate(body.joints)}
    for i, clip in enumerate(lineage.clips):
        shown |= {
            f"lineage.clips[{i}].{key}": getattr(clip, key) for key in ("name", "source", "licence")
        }
    for field, text in shown.items():
        if not text.isprintable():
            yield f"{field} is {ascii(text)[:80]}, which is not plain text"
    if not manifest.licence.strip():
        yield "licence is empty; it needs one, as an SPDX expression or LicenseRef-..."


def _check_body(manifest: Manifest) -> Iterator[str]:
    joints = len(manifest.character.joints)
    lengths = {f"character.{key}": len(getattr(manifest.character, key)) for key in DRIVES}
    if manifest.action:
        lengths |= {
            "action.offset": len(manifest.action.offset),
            "action.scale": len(manifest.action.scale),
        }
        if manifest.action.std is not None:
            lengths["action.std"] = len(manifest.action.std)
    if policy := manifest.graphs.get("policy"):
        lengths["policy.targets"] = policy.outputs[0].width
    for key in DRIVES:
        if any(value < 0 for value in getattr(manifest.character, key)):
            yield f"character.{key} has values below 0"
    for what, length in lengths.items():
        if length != joints:
            yield f"{what} is {length} wide, but the character has {joints} joints"


def _check_latent(manifest: Manifest) -> Iterator[str]:
    dim = manifest.latent.dim
    for name, graph in manifest.graphs.items():
        for tensor in (*graph.inputs, *graph.outputs):
            if tensor.name == "z" and tensor.width != dim:
                yield f"{name}.z is {tensor.width} wide, but latent.dim is {dim}"
    for clip, z in manifest.latent.clips.items():
        if len(z) != dim:
            yield f"the embedding of clip {clip!r} is {len(z)} wide, but latent.dim is {dim}"


def _check_state(manifest: Manifest) -> Iterator[str]:
    """A window is W states: a client that can act can encode. A peer's window has other
    features."""
    graphs = manifest.graphs
    if manifest.kind != "skills":
        return
    width = graphs["policy"].input("state").width
    window = graphs["encoder"].input("window")
    if window.width != width and manifest.observations == OWN_OBSERVATIONS:
        yield f"encoder.window is {window.width} wide, but policy.state is {width}"
    if (style := graphs.get("style")) and style.inputs[0].shape != window.shape:
        shape = list(style.inputs[0].shape)
        yield f"style.window has shape {shape}, but encoder.window has {list(window.shape)}"


def _check_memory(manifest: Manifest) -> Iterator[str]:
    """The tensors of `memory` must be as wide as the controller's."""
    memory = manifest.graphs.get("memory")
    if memory is None:
        return
    if manifest.kind != "controller":
        yield f"graph 'memory' is of controllers, and its kind is {manifest.kind!r}"
        return
    decision = manifest.graphs["controller"]
    for tensor in (memory.input("state"), memory.input("goal"), memory.outputs[0]):
        expected = decision.input(tensor.name.removeprefix("next_")).width
        if tensor.width != expected:
            yield f"memory.{tensor.name} is {tensor.width} wide, but the controller's is {expected}"


def _check_parent(manifest: Manifest, parent: Manifest | None) -> Iterator[str]:
    if parent is None:
        return
    width = manifest.graphs["controller"].input("state").width
    expected = parent.graphs["policy"].input("state").width
    if width != expected:
        yield f"controller.state is {width} wide, but its parent's state is {expected}"
    if manifest.observations != parent.observations:
        problem = f"its observations are those of {manifest.observations!r}"
        yield f"{problem}, but its parent's are those of {parent.observations!r}"
    if manifest.latent.dim != parent.latent.dim:
        yield f"latent.dim is {manifest.latent.dim}, but its parent's is {parent.latent.dim}"
    if manifest.character.joints != parent.character.joints:
        yield "its character has other joints than its parent's"
