"""`--triton`: a model repository. One model per graph, under the version's own number. Export only.

<skill>_<graph>/config.pbtxt <skill>_<graph>/<number>/model.onnx
"""

from __future__ import annotations

import json

from skills_store.graph import Tensor
from skills_store.transfer.bundle import Bundle, Tree
from skills_store.version import Version

MAX_BATCH = 1024  # rows that Triton may merge into one call; a graph itself takes any number
TYPES = {"float32": "TYPE_FP32"}


def make_tree(version: Version, bundle: Bundle) -> Tree:
    models: Tree = {}
    for name, graph in version.manifest.graphs.items():
        model = f"{version.name}_{name}"
        models[f"{model}/{version.number}/model.onnx"] = bundle.files[graph.file]
        models[f"{model}/config.pbtxt"] = _format_config(
            model, version, graph.inputs, graph.outputs
        ).encode()
    return models


def _format_config(
    model: str, version: Version, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> str:
    return "\n".join(
        [
            f"name: {json.dumps(model)}",
            'backend: "onnxruntime"',
            f"max_batch_size: {MAX_BATCH}",
            *(f"input {_format_tensor(tensor)}" for tensor in inputs),
            *(f"output {_format_tensor(tensor)}" for tensor in outputs),
            # Rows do not wait for each other: at 30 Hz a late action is worse than a batch of one.
            "dynamic_batching { max_queue_delay_microseconds: 0 }",
            f"version_policy {{ specific {{ versions: [ {version.number} ] }} }}",
            _format_parameter("skill", version.pinned),
            _format_parameter("control_dt", repr(version.manifest.character.control_dt)),
            "",
        ]
    )


def _format_tensor(tensor: Tensor) -> str:
    """`dims` leaves out the free first axis, the batch. A tensor with only that axis has one number
    per row.
    """
    row = [size for size in tensor.shape if isinstance(size, int)]
    reshape = "" if row else " reshape { shape: [ ] }"
    dims = ", ".join(map(str, row or [1]))
    fields = f"name: {json.dumps(tensor.name)} data_type: {TYPES[tensor.dtype]} dims: [ {dims} ]"
    return f"{{ {fields}{reshape} }}"


def _format_parameter(key: str, value: str) -> str:
    return f"parameters {{ key: {json.dumps(key)} value {{ string_value: {json.dumps(value)} }} }}"
