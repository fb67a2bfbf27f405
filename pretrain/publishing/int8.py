"""Quantizes a graph's matrix products to int8 with ONNX Runtime's tools: weights by column, inputs
by range.

The ranges are calibrated on given rows, and fixed. Ranges computed in each run (dynamic
quantization) are as fast, but let a row change the outputs of other rows, of other clients, in its
batch."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

Rows = Mapping[str, np.ndarray]  # by input, equally many
PRODUCTS = ["Gemm", "MatMul"]
BATCH = 256


class Batches(CalibrationDataReader):
    def __init__(self, rows: Rows) -> None:
        count = len(next(iter(rows.values())))
        firsts = range(0, count, BATCH)
        self._left = iter([slice_rows(rows, first) for first in firsts])

    def get_next(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # None ends it
        return next(self._left, None)


def slice_rows(rows: Rows, first: int) -> dict[str, np.ndarray]:
    """A batch of `rows`, from row `first` on."""
    return {name: x[first : first + BATCH] for name, x in rows.items()}


@contextmanager
def _silence_warnings() -> Iterator[None]:
    """The tools warn on the root logger to fold the graph first, which the exporter does."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def quantize_to_int8(graph: bytes, rows: Rows) -> bytes:
    """`graph` with its products' inputs rounded to 8 bits, over their ranges on `rows`.

    The first product stays float: its observations and z share one range, and z, of unit length,
    would have only a few steps. Processors multiply unsigned inputs and signed weights fastest;
    those without VNNI add two products in 16 bits, so weights have 7 bits, so that outputs do not
    depend on the machine (docs/training.md). The outputs of products stay float: rounding them
    saves no time. ValueError for fewer than two products."""
    model = onnx.load_model_from_string(graph)
    products = [node for node in model.graph.node if node.op_type in PRODUCTS]
    if len(products) < 2:
        count = len(products)
        raise ValueError(
            f"a graph of {count} matrix products has none to be rounded: the first stays float"
        )
    products[0].name = products[0].name or "first"
    with TemporaryDirectory() as folder, _silence_warnings():
        original = Path(folder) / "float.onnx"
        quantized = Path(folder) / "int8.onnx"
        original.write_bytes(model.SerializeToString())
        quantize_static(
            original,
            quantized,
            Batches(rows),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            op_types_to_quantize=PRODUCTS,
            nodes_to_exclude=[products[0].name],
            extra_options={"OpTypesToExcludeOutputQuantization": PRODUCTS},
        )
        return onnx.load(quantized).SerializeToString(deterministic=True)
