"""Exports a torch module as one ONNX file, strips it and checks its parity. Independent of skills
and bodies."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from copy import deepcopy

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

from pretrain.rl.mirror_net import to_dense
from skills_store.graph import Graph, Parity
from skills_store.graph import Tensor as Declared

OPSET = 20
BATCH_SIZES = (1, 2, 3, 17, 256)
TOLERANCE = 1e-5
MAX_ROWS = 65536
ROWS_AT_ONCE = 256


class ParityError(RuntimeError):
    """The outputs of the exported graph differ from those of the network."""


def export(module: nn.Module, examples: Mapping[str, Tensor], output: str) -> bytes:
    """ONNX bytes of `module`, whose keyword inputs are `examples` (first axis free) and whose one
    output is `output`.

    One file without external data, and without the source paths and stack traces that the exporter
    writes. Raises ValueError where the code of `module` fixes the number of rows, of which the
    exporter does not warn (torch 2.13)."""
    batch = torch.export.Dim("B", min=1, max=MAX_ROWS)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside the exporter
        program = torch.onnx.export(
            to_dense(deepcopy(module)),
            kwargs=dict(examples),
            input_names=list(examples),
            output_names=[output],
            dynamic_shapes={name: {0: batch} for name in examples},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    _check_rows_are_free(model, output)
    for holder in (
        model,
        model.graph,
        *model.graph.node,
        *model.graph.input,
        *model.graph.output,
        *model.graph.value_info,
    ):
        del holder.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
    return model.SerializeToString(deterministic=True)


def _check_rows_are_free(model: onnx.ModelProto, output: str) -> None:
    for value in model.graph.input:
        rows = value.type.tensor_type.shape.dim[0]
        if rows.HasField("dim_value"):
            raise ValueError(
                f"the graph of {output} takes {rows.dim_value} rows of {value.name}, expected any "
                "number: its code uses len(x), where x.shape[0] stays free"
            )


def check_parity(
    name: str, data: bytes, module: nn.Module, rows: Mapping[str, Tensor], output: str
) -> Parity:
    """Largest difference between network and graph over all `rows`, in batches of each of
    BATCH_SIZES."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = _compute(module, rows)
    worst = 0.0
    for size in BATCH_SIZES:
        # every row at the largest size, a sample of the rows at the small ones
        stop = len(expected) if size == max(BATCH_SIZES) else min(len(expected), 64 * size)
        for start in range(0, stop, size):
            feed = {key: x[start : min(start + size, stop)].numpy() for key, x in rows.items()}
            actual = np.asarray(session.run([output], feed)[0])
            difference = np.abs(actual - expected[start : start + len(actual)])
            worst = max(worst, float(difference.max()))
    if not worst <= TOLERANCE:
        text = f"{name}: the ONNX graph differs from the network by {worst:.2e}"
        raise ParityError(f"{text}, allowed {TOLERANCE:.0e}")
    return Parity(max_abs_error=worst, rows=len(expected), batch_sizes=BATCH_SIZES)


def _compute(module: nn.Module, rows: Mapping[str, Tensor]) -> np.ndarray:
    """Outputs of `module` for all `rows`, in blocks: the style graph multiplies rows by the number
    of clips."""
    slices = [x.split(ROWS_AT_ONCE) for x in rows.values()]
    with torch.no_grad():
        parts = [module(**dict(zip(rows, part, strict=True))) for part in zip(*slices, strict=True)]
    return torch.cat(parts).numpy()


def describe_graph(
    file: str, inputs: tuple[Declared, ...], output: Declared, parity: Parity
) -> Graph:
    return Graph(file=file, opset=OPSET, inputs=inputs, outputs=(output,), parity=parity)
