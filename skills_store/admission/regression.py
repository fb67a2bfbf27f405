"""A protected alias may move only to a version whose card has the same measures and is no worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from skills_store.disk.alias_move import AliasMove, Decision, MoveTarget, is_protected
from skills_store.errors import Regression
from skills_store.manifest import Manifest
from skills_store.version import Version

LOWER = "lower"  # is better
HIGHER = "higher"
EPISODES = "detail.survival.n"  # of a card: a few lucky episodes must not beat many
MEASURES = {
    "skills": {
        "falls_per_minute.own": LOWER,
        "falls_per_minute.random": LOWER,
        "time_on_clip.mean": HIGHER,
        "time_on_clip.least": HIGHER,
        "switch_success.mean": HIGHER,
        EPISODES: HIGHER,
    },
    "controller": {"return_ratio": HIGHER},
}
# For a version whose card has none of these measures but EPISODES: what every card has.
OLDER_MEASURES = {"survival": HIGHER, "coverage": HIGHER, EPISODES: HIGHER}


def find_regressions(target: Manifest, current: Manifest) -> tuple[str, ...]:
    """Each measure in which `target` is worse than `current`, or that its card lacks, as text."""
    if target.kind != current.kind:
        return (f"kind, for it is of kind {target.kind!r} and not {current.kind!r}",)
    regressions = []
    for name, better in _measures(current).items():
        before = _read_number(current.card, name)
        after = _read_number(target.card, name)
        if before is None:
            continue
        if after is None:
            regressions.append(f"{name}, which its card lacks (now {before:.6g})")
        elif (after < before) if better == HIGHER else (after > before):
            regressions.append(f"{name}, {after:.6g} instead of {before:.6g}")
    return tuple(regressions)


def _measures(current: Manifest) -> Mapping[str, str]:
    """Name -> better direction, of the measures by which `current` is compared."""
    measures = MEASURES[current.kind]
    has_measure = any(
        _read_number(current.card, name) is not None for name in measures if name != EPISODES
    )
    return OLDER_MEASURES if current.kind == "skills" and not has_measure else measures


def _read_number(card: Mapping[str, Any], name: str) -> float | None:
    """The card's number at the dotted key `name`; None if there is none."""
    value: Any = card
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def plan_move(
    alias: str, number: int, version: Callable[[int], Version], *, force: bool
) -> Decision:
    """A move of `alias` to `number`. Raises Regression if the alias is protected and the version
    worse, unless forced.

    The version is compared with the preceding move, so that of two concurrent moves the second is
    compared with the first.
    """

    def decide(last: AliasMove | None) -> MoveTarget:
        target = version(number)
        guards = last is not None and is_protected(last)
        if last and guards and not force:
            current = version(last.number)
            if regressions := find_regressions(target.manifest, current.manifest):
                raise Regression(f"{target.name}@{alias}", target.ref, current.ref, regressions)
        return MoveTarget(target, forced=force and guards)

    return decide


def plan_protection(version: Callable[[int], Version], *, on: bool) -> Decision:
    """A move of an alias to its current version that turns its protection on or off."""

    def decide(last: AliasMove | None) -> MoveTarget:
        assert last is not None  # an alias is never removed
        return MoveTarget(version(last.number), protected=on)

    return decide
