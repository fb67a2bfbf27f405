"""Converts a layout to the manifest's slices."""

from __future__ import annotations

from collections.abc import Iterable

from pretrain.characters.state import Part
from skills_store.graph import Slice


def to_slices(parts: Iterable[Part]) -> tuple[Slice, ...]:
    return tuple(
        Slice(name=part.name, start=part.start, stop=part.stop, unit=part.unit, frame=part.frame)
        for part in parts
    )
