"""Named arrays of a foreign file, each checked when it is read. Only this module imports torch.

A checkpoint is a pickle. torch's restricted unpickler opens it, which makes tensors and plain
values and calls nothing else. Every requested array must exist, be real and finite, and have the
width that the network needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skills_store.errors import CheckpointRefusal, StoreError

MAX_BYTES = 2 * 2**30  # of the file
MAX_ELEMENTS = 64 * 2**20  # of one tensor as it is read, which may be more than the file stores
DTYPES = ("torch.float32", "torch.float64")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    weight: Array  # (out, in), as in torch
    bias: Array  # (out,)

    @property
    def inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]


@dataclass(frozen=True)
class Tensors:
    source: str
    tensors: Mapping[str, Any]  # torch tensors, as in the file
    max_elements: int = MAX_ELEMENTS  # of one tensor

    def has(self, name: str) -> bool:
        return name in self.tensors

    def vector(self, name: str) -> Array:
        return self._read_array(name, 1)

    def inputs(self, name: str) -> int:
        """Number of inputs of the layer `name`."""
        return self._read_array(f"{name}.weight", 2).shape[1]

    def layer(self, name: str, inputs: int) -> Layer:
        layer = Layer(self._read_array(f"{name}.weight", 2), self._read_array(f"{name}.bias", 1))
        if layer.inputs != inputs:
            raise self.refusal(f"{name} takes {layer.inputs} numbers, but {inputs} come in")
        if len(layer.bias) != layer.outputs:
            raise self.refusal(
                f"{name} has {layer.outputs} rows of weights, but {len(layer.bias)} biases"
            )
        return layer

    def stack(self, name: str, inputs: int, step: int = 2) -> tuple[Layer, ...]:
        """Layers `name`.0, `name`.2, ...: as many as the file has, each fed by the one before it.

        `step` is 2 if torch numbers the activations in between, too. Gaps in the numbers are
        refused.
        """
        pattern = re.compile(rf"{re.escape(name)}\.(\d+)\.weight")
        numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, self.tensors) if match)
        if not numbers or numbers != list(range(0, step * len(numbers), step)):
            raise self.refusal(f"it has layers {numbers} of {name}, not 0, {step}, {2 * step}, ...")
        layers: list[Layer] = []
        for number in numbers:
            layers.append(self.layer(f"{name}.{number}", layers[-1].outputs if layers else inputs))
        return tuple(layers)

    def refusal(self, reason: str) -> CheckpointRefusal:
        return CheckpointRefusal(self.source, reason)

    def _read_array(self, name: str, rank: int) -> Array:
        tensor = self.tensors.get(name)
        if tensor is None:
            raise self.refusal(f"it has no tensor {name}")
        if (
            str(tensor.dtype) not in DTYPES
            or str(tensor.layout) != "torch.strided"
            or tensor.is_meta
        ):
            raise self.refusal(
                f"{name} is {tensor.dtype}, {tensor.layout}; "
                f"it needs to be one of {', '.join(DTYPES)}"
            )
        if tensor.dim() != rank or not 0 < tensor.numel() <= self.max_elements:
            shape = list(tensor.shape)
            raise self.refusal(
                f"{name} has shape {shape}; "
                f"it needs {rank} axes, and 1 to {self.max_elements} numbers"
            )
        # The peers compute in float32, so float64 values are rounded first, as in their code.
        values = tensor.detach().float().double().numpy()
        if not np.isfinite(values).all():
            raise self.refusal(f"{name} has values that are not finite")
        return values


def load(path: Path, *, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS) -> Tensors:
    """The tensors in a peer's file. Raises CheckpointRefusal for a file that is too large or holds
    more than tensors.
    """
    try:
        import torch
    except ImportError as error:
        raise StoreError(f"import-checkpoint needs torch (repertoire[train]): {error}") from error
    if (size := path.stat().st_size) > max_bytes:
        raise CheckpointRefusal(str(path), f"it has {size} bytes, over the cap of {max_bytes}")
    try:
        with torch.serialization.safe_globals(_list_scalars()):
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling can raise any error
        requested = re.search(r"GLOBAL ([\w.]+)", str(error))
        # Not torch's message: it advises to load without the restriction.
        what = (
            f"it asks for {requested[1]}" if requested else "no such file was written by torch.save"
        )
        raise CheckpointRefusal(str(path), f"it is not plain tensors: {what}") from error
    tensors = {name: value for name, value in _flatten(loaded) if isinstance(value, torch.Tensor)}
    return Tensors(str(path), tensors, max_elements)


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for key, inner in value.items():
        if isinstance(key, str):
            yield from _flatten(inner, f"{prefix}.{key}" if prefix else key)


def _list_scalars() -> list[Any]:
    """ASE's trainer stores its best reward as a numpy number, beside the networks. Unpickling one
    runs no code.
    """
    # the function that numpy's pickles name; numpy's stubs lack it
    scalar = np._core.multiarray.scalar  # type: ignore[attr-defined]
    kinds = [type(np.dtype(kind)) for kind in ("float32", "float64")]
    return [scalar, (scalar, "numpy.core.multiarray.scalar"), np.dtype, *kinds]
