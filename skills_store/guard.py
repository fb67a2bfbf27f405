"""What an alias that others rely on may move to: a version that is measured, and no worse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GUARDED = "prod"
MEASURES = {"skills": ("survival", "skill_recovery", "coverage"), "controller": ("return_ratio",)}


def worse(kind: str, card: Mapping[str, Any], current: Mapping[str, Any]) -> tuple[str, ...]:
    """Each measure in which `card` falls below `current`, or that it lacks, as text."""
    found = []
    for name in MEASURES[kind]:
        before, after = current.get(name), card.get(name)
        if before is None:
            continue
        if after is None:
            found.append(f"{name}, which is not in its card (now {before:.3g})")
        elif after < before:
            found.append(f"{name}, {after:.3g} instead of {before:.3g}")
    return tuple(found)
