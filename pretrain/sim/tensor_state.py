"""Snapshots of an object's named tensors for checkpoints, cloned when saved and restored."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor


class TensorState:
    """`snapshot` and `restore` of the tensors in `state_fields`, bit for bit."""

    state_fields: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Any]:
        """Everything `restore` needs to continue bit for bit. A subclass with parts nests their
        snapshots."""
        fields: dict[str, Tensor] = {name: getattr(self, name) for name in self.state_fields}
        return {name: tensor.clone() for name, tensor in fields.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """KeyError if the snapshot lacks a field."""
        for name in self.state_fields:
            setattr(self, name, snapshot[name].clone())
