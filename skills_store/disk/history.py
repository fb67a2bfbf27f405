"""The moves and deletions of one skill in the order in which they were made, independent of their
authors' clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate, pairwise

from skills_store.disk.alias_move import AliasMove
from skills_store.disk.tombstones import Tombstone

Timed = tuple[datetime, AliasMove]


def merge_events(
    moves: Iterable[Sequence[AliasMove]], tombstones: Iterable[Tombstone]
) -> tuple[AliasMove | Tombstone, ...]:
    """`moves`, of each alias by revision, and `tombstones` in one sequence, oldest first.

    Moves of one alias stay in the order of their revisions. A deletion comes after every move to
    its version and the next move of that alias: an alias cannot move to a deleted version, and a
    version with an alias cannot be deleted. Only other events are ordered by time.
    """
    keyed: list[tuple[tuple[datetime, bool, str, int], AliasMove | Tombstone]] = []
    last_used: dict[int, datetime] = {}  # by version: when the last alias moved away from it
    for of_one_alias in moves:
        times = accumulate((move.at for move in of_one_alias), max)
        timed = list(zip(times, of_one_alias, strict=True))
        for number, time in _list_uses(timed):
            last_used[number] = max(time, last_used.get(number, time))
        keyed += [((time, False, move.alias, move.rev), move) for time, move in timed]
    for stone in tombstones:
        time = max(stone.at, last_used.get(stone.number, stone.at))
        keyed.append(((time, True, "", stone.number), stone))
    return tuple(event for _, event in sorted(keyed, key=lambda pair: pair[0]))


def _list_uses(timed: Sequence[Timed]) -> Iterator[tuple[int, datetime]]:
    """Versions that one alias pointed to, and times before which they cannot have been deleted."""
    for time, move in timed:
        yield move.number, time
    for (_, before), (time, move) in pairwise(timed):
        if move.rev == before.rev + 1:  # otherwise a damaged move lies between
            yield before.number, time
