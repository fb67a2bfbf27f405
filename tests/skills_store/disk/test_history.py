"""The log keeps the order of events even where the clock was set back between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills_store.__main__ import main
from skills_store.disk import aliases
from skills_store.disk.alias_move import AliasMove
from skills_store.disk.history import merge_events
from skills_store.disk.tombstones import Tombstone
from skills_store.store import Store
from tests import tiny

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], datetime]:
    """Sets the clock of alias moves to so many minutes after noon."""

    def set_clock(minutes: float) -> datetime:
        now = NOON + timedelta(minutes=minutes)
        fixed = type("Fixed", (datetime,), {"now": classmethod(lambda cls, zone: now)})
        monkeypatch.setattr(aliases, "datetime", fixed)
        return now

    return set_clock


def test_the_log_is_by_revision_where_the_clock_was_set_back(
    tmp_path: Path, at: Callable[[float], datetime], capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path, clock=lambda: at(-90))
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    for minutes, number in ((0, 1), (-60, 2), (5, 1), (-30, 2)):
        at(minutes)
        store.alias("humanoid", "prod", number)
    store.delete("humanoid@1", "it limps")
    assert main(["--store", str(tmp_path), "log", "humanoid", "--json"]) == 0
    events = json.loads(capsys.readouterr().out)
    assert [event.get("rev") for event in events] == [1, 2, 3, 4, None]
    times = [datetime.fromisoformat(event["at"]) for event in events]
    # As recorded.
    assert times == [NOON + timedelta(minutes=minutes) for minutes in (0, -60, 5, -30, -90)]
    assert main(["--store", str(tmp_path), "log", "humanoid"]) == 0
    shown = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[4] for line in shown] == ["1", "2", "1", "2", "deleted"]


def test_aliases_are_merged_by_time_where_clocks_are_right(
    tmp_path: Path, at: Callable[[float], datetime]
) -> None:
    store = Store(tmp_path)
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    for minutes, alias, number in (
        (0, "prod", 1),
        (1, "canary", 2),
        (2, "prod", 2),
        (3, "canary", 1),
    ):
        at(minutes)
        store.alias("humanoid", alias, number)
    assert [move.at for move in store.log("humanoid")] == [
        NOON + timedelta(minutes=i) for i in range(4)
    ]


def move(alias: str, rev: int, number: int, minutes: int) -> AliasMove:
    when = NOON + timedelta(minutes=minutes)
    return AliasMove(
        alias=alias, rev=rev, previous=None, number=number, digest=DIGEST, at=when, by="me"
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[AliasMove]], list[Tombstone]]:
    """Moves of three aliases and deletions of versions that no alias points to, at any time."""
    steps = st.tuples(st.integers(1, 5), st.integers(-5, 5))
    moves = []
    for alias in ("canary", "prod", "stable"):
        made = draw(st.lists(steps, max_size=5))
        moves.append([move(alias, rev, *step) for rev, step in enumerate(made, 1)])
    free = {1, 2, 3, 4, 5} - {alias_moves[-1].number for alias_moves in moves if alias_moves}
    stones = []
    for number in draw(st.sets(st.sampled_from(sorted(free)))) if free else ():
        when = NOON + timedelta(minutes=draw(st.integers(-5, 5)))
        stones.append(
            Tombstone(name="humanoid", number=number, digest=None, at=when, by="me", why="old")
        )
    return moves, stones


@given(histories())
def test_merged_events_keep_revision_order_at_any_clock(
    made: tuple[list[list[AliasMove]], list[Tombstone]],
) -> None:
    moves, stones = made
    events = merge_events(moves, stones)
    assert sorted(map(id, events)) == sorted(id(event) for event in (*chain(*moves), *stones))
    for alias_moves in moves:
        assert [event for event in events if event in alias_moves] == alias_moves
    for stone in stones:
        after = events[events.index(stone) :]
        assert stone.number not in {event.number for event in after if isinstance(event, AliasMove)}


def test_merge_orders_by_time_across_a_damaged_move() -> None:
    """A repair may come long after the version before the damage was deleted: then time decides."""
    moves = [move("prod", 1, 1, 0), move("prod", 3, 2, 9)]
    gone = NOON + timedelta(minutes=5)
    stone = Tombstone(name="humanoid", number=1, digest=None, at=gone, by="me", why="old")
    assert merge_events([moves], [stone]) == (moves[0], stone, moves[1])
