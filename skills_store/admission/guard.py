"""What an alias that others rely on, a protected one, may move to: a version that is measured, and no worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skills_store.disk.aliases import AliasMove, Decide, Target, guarded
from skills_store.errors import Regression
from skills_store.version import Version

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


def onward(alias: str, number: int, version: Callable[[int], Version], *, force: bool) -> Decide:
    """A move of `alias` to `number`; Regression where it is protected and would lose by that, unless forced.

    The comparison is with the very move that this one follows, so that of two at once the second is compared with the first.
    """

    def decide(last: AliasMove | None) -> Target:
        target = version(number)
        guards = last is not None and guarded(last)
        if last and guards and not force:
            current = version(last.number)
            if found := worse(target.manifest.kind, target.manifest.card, current.manifest.card):
                raise Regression(f"{target.name}@{alias}", target.ref, current.ref, found)
        return Target(target, forced=force and guards)

    return decide


def protecting(version: Callable[[int], Version], *, on: bool) -> Decide:
    """A move of an alias to where it is; from then on it is protected, or is no more."""

    def decide(last: AliasMove | None) -> Target:
        assert last is not None  # an alias, once there, never goes away
        return Target(version(last.number), protected=on)

    return decide
