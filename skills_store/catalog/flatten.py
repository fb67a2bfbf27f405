"""A tree of plain values as dotted keys, so that trees can be compared and queried leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def flatten(tree: Mapping[str, Any]) -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}. A list of objects with names becomes a mapping by name, any
    other list a leaf.
    """
    return dict(_walk("", tree))


def flatten_numbers(tree: Mapping[str, Any]) -> dict[str, float]:
    """Only the leaves that are numbers."""
    return {key: value for key, value in flatten(tree).items() if _is_number(value)}


def _walk(prefix: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if (branch := _branch(value)) is not None:
            yield from _walk(f"{prefix}{key}.", branch)
        else:
            yield f"{prefix}{key}", value


def _branch(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, Mapping) and "name" in item for item in value)
    ):
        return {item["name"]: _drop_name(item) for item in value}
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _drop_name(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in item.items() if key != "name"}
