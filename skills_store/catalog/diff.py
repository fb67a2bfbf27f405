"""Differences between two versions, leaf by leaf of manifests: graphs, body, card, lineage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skills_store.catalog.flatten import flatten
from skills_store.manifest import Manifest
from skills_store.version import Version


@dataclass(frozen=True)
class Change:
    """`delta` is after - before for numbers, and the largest difference for rows of them."""

    key: str
    how: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None
    delta: float | None = None


def compare(a: Version, b: Version) -> dict[str, tuple[Change, ...]]:
    """From `a` to `b`, by section; a section that is the same in both is left out."""
    before = _split_sections(a.manifest)
    after = _split_sections(b.manifest)
    changes = {name: list_changes(before[name], after[name]) for name in before}
    return {name: section for name, section in changes.items() if section}


def list_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    changes = []
    for key in sorted({*before, *after}):
        if key not in before:
            changes.append(Change(key, "added", after=after[key]))
        elif key not in after:
            changes.append(Change(key, "removed", before=before[key]))
        elif before[key] != after[key]:
            delta = _difference(before[key], after[key])
            changes.append(Change(key, "changed", before[key], after[key], delta))
    return tuple(changes)


def _split_sections(manifest: Manifest) -> dict[str, dict[str, Any]]:
    plain = manifest.model_dump(mode="json")
    lineage = plain.pop("lineage")
    # A clip or a file is compared as one item, not by its four fields.
    items = {
        "clips": {clip.pop("name"): clip for clip in lineage.pop("clips")},
        "files": plain.pop("files"),
    }
    config = lineage.pop("config")
    parts = {
        name: plain.pop(name) or {}
        for name in ("graphs", "latent", "action", "character", "task", "card")
    }
    facts = {"version": plain, **parts, "config": config, "lineage": lineage}
    return {name: flatten(tree) for name, tree in facts.items()} | items


def _difference(before: Any, after: Any) -> float | None:
    match before, after:
        case bool(), _:
            return None
        case int() | float(), int() | float():
            return after - before
        case list(), list() if len(before) == len(after):
            steps = [_difference(x, y) for x, y in zip(before, after, strict=True)]
            return (
                max((abs(step) for step in steps if step is not None), default=None)
                if None not in steps
                else None
            )
        case {"size": int(x)}, {"size": int(y)}:
            return y - x
    return None
