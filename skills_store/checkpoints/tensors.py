"""Named arrays of a foreign file, each checked as it is taken. The one module here that imports
torch.

A checkpoint is a pickle. It is opened by torch's restricted unpickler, which makes tensors and
plain values and calls nothing else; then every array that is asked for must be there, real, finite
and of the width that the network needs.
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
MAX_ELEMENTS = 64 * 2**20  # of one tensor as it is read, which may be more than the file has of it
DTYPES = ("torch.float32", "torch.float64")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    weight: Array  # (out, in), as torch has it
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
    tensors: Mapping[str, Any]  # torch tensors, as the file has them
    max_elements: int = MAX_ELEMENTS  # of one tensor

    def has(self, name: str) -> bool:
        return name in self.tensors

    def vector(self, name: str) -> Array:
        return self._read_array(name, 1)

    def inputs(self, name: str) -> int:
        """How many numbers the layer `name` takes."""
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

        `step` is 2 where torch numbers the activations between them, too. A gap is no smaller
        network.
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
        # The peers compute in float32; what they kept in float64 is rounded first, here as there.
        values = tensor.detach().float().double().numpy()
        if not np.isfinite(values).all():
            raise self.refusal(f"{name} has values that are not finite")
        return values


def load(path: Path, *, max_bytes: int = MAX_BYTES, max_elements: int = MAX_ELEMENTS) -> Tensors:
    """The tensors in a peer's file. CheckpointRefusal of a file that is too large, or is more than
    tensors.
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
    except Exception as error:  # unpickling fails in as many ways as there are files
        requested = re.search(r"GLOBAL ([\w.]+)", str(error))
        # Not torch's own words: they advise to load it without the restriction.
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
    """ASE's trainer notes its best reward as a numpy number, beside the networks. Making one runs
    no code.
    """
    # the function that pickles of numpy name, which numpy's stubs leave out
    scalar = np._core.multiarray.scalar  # type: ignore[attr-defined]
    kinds = [type(np.dtype(kind)) for kind in ("float32", "float64")]
    return [scalar, (scalar, "numpy.core.multiarray.scalar"), np.dtype, *kinds]
