"""Graph: an ONNX file of a version, and its inputs and outputs: shapes, slices, units, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from skills_store.frozen_model import FrozenModel


class Slice(FrozenModel):
    """A named part of a tensor's last axis, `[start, stop)`, with its unit and the frame it is
    given in.
    """

    name: str
    start: int = Field(ge=0)
    stop: int = Field(gt=0)
    unit: str
    frame: str


class Tensor(FrozenModel):
    """A graph's input or output. A string in `shape` is a free axis: `["B", 69]`."""

    name: str
    shape: tuple[int | str, ...]
    dtype: Literal["float32"] = "float32"
    slices: tuple[Slice, ...] = ()

    @property
    def width(self) -> int:
        """Length of the last axis."""
        assert isinstance(self.shape[-1], int)
        return self.shape[-1]

    @model_validator(mode="after")
    def _check_slices(self) -> Tensor:
        edges = [0, *(s.stop for s in self.slices)]
        starts = [s.start for s in self.slices]
        if self.slices and (starts != edges[:-1] or edges[-1] != self.shape[-1]):
            raise ValueError(
                f"slices of {self.name!r} must tile its last axis of {self.shape[-1]}, "
                f"got {starts} to {edges[1:]}"
            )
        return self


def make_latent_tensor(dim: int) -> Tensor:
    """z (B, D), on the unit sphere of the library's own latent space."""
    return Tensor(
        name="z",
        shape=("B", dim),
        slices=(Slice(name="z", start=0, stop=dim, unit="1", frame="latent"),),
    )


def make_target_tensor(joints: Sequence[str]) -> Tensor:
    """Joint position targets (B, J), one slice per joint."""
    slices = tuple(
        Slice(name=name, start=i, stop=i + 1, unit="rad", frame="joint")
        for i, name in enumerate(joints)
    )
    return Tensor(name="targets", shape=("B", len(joints)), slices=slices)


class Parity(FrozenModel):
    """How far the graph was from the network it was made of, over `rows` rows at each of
    `batch_sizes`.

    No further than 1e-5, unless it is quantized: that it is, the gate sees.
    """

    max_abs_error: float = Field(ge=0)
    rows: int = Field(gt=0)
    batch_sizes: tuple[int, ...] = Field(min_length=1)


class Graph(FrozenModel):
    """One ONNX file: features and normalizers are inside it."""

    file: str
    opset: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parity: Parity

    def input(self, name: str) -> Tensor:
        """Raises ValueError for a name that it does not have."""
        for tensor in self.inputs:
            if tensor.name == name:
                return tensor
        names = ", ".join(tensor.name for tensor in self.inputs)
        raise ValueError(f"{self.file} has no input {name!r}; there are: {names}")
