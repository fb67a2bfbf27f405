"""A graph whose matrix products are of int8, by ONNX Runtime's own tools: weights by column, inputs by the range they had.

The ranges are those of given rows, and fixed. Ranges taken anew in each run (dynamic quantisation) are as fast, but let a row
change the answers to all rows beside it, which are those of other clients.
"""

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

Rows = Mapping[str, np.ndarray]  # of each input, as many
PRODUCTS = ["Gemm", "MatMul"]
BATCH = 256


class Batches(CalibrationDataReader):
    def __init__(self, rows: Rows) -> None:
        count = len(next(iter(rows.values())))
        self._left = iter([{name: x[i : i + BATCH] for name, x in rows.items()} for i in range(0, count, BATCH)])

    def get_next(self) -> dict[str, Any] | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # None ends it
        return next(self._left, None)


@contextmanager
def _hushed() -> Iterator[None]:
    """The tools advise on the root logger to fold the graph first: the exporter has."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def quantize_to_int8(graph: bytes, rows: Rows) -> bytes:
    """`graph` with its products' inputs rounded to 8 bits, over the ranges that they have on `rows`.

    Not so the first product: observations and z share one range there, and z, of unit length, would be left with a handful
    of steps. Inputs unsigned and weights signed is what processors multiply fastest; those without VNNI add two products
    in 16 bits, so weights have 7, or the answers would depend on the machine (docs/training.md). What comes out of a
    product stays float: rounding that, too, saves no time. ValueError if nothing is left.
    """
    model = onnx.load_model_from_string(graph)
    products = [node for node in model.graph.node if node.op_type in PRODUCTS]
    if len(products) < 2:
        raise ValueError(f"a graph of {len(products)} matrix products has none to be rounded: the first stays float")
    products[0].name = products[0].name or "first"
    with TemporaryDirectory() as folder, _hushed():
        given, made = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        given.write_bytes(model.SerializeToString())
        quantize_static(
            given,
            made,
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
        return onnx.load(made).SerializeToString(deterministic=True)
