"""SIGKILL at every system call and at random moments: all or nothing, without a repair."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path

import pytest

from skills_store.store import Store
from tests import tiny
from tests.skills_store import traced
from tests.skills_store.contents import FILES, assert_clean, live, publish


def prepared(root: Path) -> Store:
    """Two versions, prod at the second; the first can be deleted."""
    store = Store(root)
    publish(store)
    publish(store, 1)
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "prod", 2)
    return store


# action: (what it does to a prepared store, which versions there may be before and after)
ACTIONS: dict[str, tuple[Callable[[Store], object], list[list[int]]]] = {
    "publish": (lambda store: publish(store, 2), [[1, 2], [1, 2, 3]]),
    "delete": (lambda store: store.delete("humanoid@1", "old"), [[1, 2], [2]]),
    "rollback": (lambda store: store.rollback("humanoid", "prod"), [[1, 2]]),
    "lease": (lambda store: store.lease("humanoid@1", 60), [[1, 2]]),
    "gc": (lambda store: store.gc(grace=0), [[1, 2]]),
}


def check_killed_at_every_call(tmp_path: Path, action: str, among: frozenset[str] | None) -> None:
    act, allowed = ACTIONS[action]
    seen = []
    # The last call is never reached, so that the action ends by itself.
    rehearsal = prepared(tmp_path / "rehearsal")
    leave_garbage(rehearsal)
    for step, call in enumerate([*traced.calls(lambda: act(rehearsal), among), ("fsync", 10_000)]):
        store = prepared(tmp_path / str(step))
        leave_garbage(store)
        was_killed = traced.killed(lambda store=store: act(store), call)
        reopened = Store(store.root)
        assert reopened.verify() == ()  # without a repair
        found = live(reopened)
        assert found in allowed
        # The order of calls for memory differs between runs; that of calls to the disk does not.
        if call[0] in traced.DISK:
            seen.append(found)
        # No number is skipped or reused.
        assert tiny.publish_tiny(reopened, seed=2).number == (4 if 3 in found else 3)
        assert_clean(reopened)
    assert not was_killed
    # The old state until the single commit point, and the new one after it.
    assert seen == sorted(seen, key=allowed.index)
    assert seen[-1] == allowed[-1]


def leave_garbage(store: Store) -> None:
    """The leftovers of a publish that was killed long ago."""
    (store.root / "staging/1-left").write_bytes(b"half a graph")
    (store.root / "blobs/sha256" / ("0" * 64)).write_bytes(b"nobody's")


@traced.needs_strace
@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_every_call_that_changes_the_disk(tmp_path: Path, action: str) -> None:
    check_killed_at_every_call(tmp_path, action, traced.CHANGES)


@pytest.mark.slow
@traced.needs_strace
@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_every_system_call(tmp_path: Path, action: str) -> None:
    check_killed_at_every_call(tmp_path, action, None)


@traced.needs_strace
def test_first_publish_killed_at_any_call_is_recoverable(tmp_path: Path) -> None:
    found = traced.calls(lambda: publish(Store(tmp_path / "rehearsal")), traced.CHANGES)
    for step, call in enumerate(traced.spread(found, 20)):
        store = Store(tmp_path / str(step))
        traced.killed(lambda store=store: publish(store), call)
        assert live(store) in ([], [1])
        publish(Store(store.root))
        assert_clean(store)


def test_killed_at_a_few_random_moments(tmp_path: Path) -> None:
    check_random_kills(tmp_path, 15)


@pytest.mark.slow
def test_killed_at_1000_random_moments(tmp_path: Path) -> None:
    check_random_kills(tmp_path, 1000)


def check_random_kills(tmp_path: Path, times: int) -> None:
    """In one store: each reported publish is there, an unreported one is whole or absent."""
    store = Store(tmp_path / "store")
    moments = random.Random(0)
    reported = []
    before = []
    publish(Store(tmp_path / "rehearsal"))  # imports everything
    began = time.monotonic()
    publish(Store(tmp_path / "rehearsal"))
    a_few = 5 * (time.monotonic() - began)  # publishes, on a machine as busy as this one
    for _ in range(times):
        reported += _publish_until_killed(store, moments.uniform(0, max(0.1, a_few)))
        found = listed(Store(store.root))
        assert found == list(range(1, len(found) + 1))  # gap-free
        assert set(reported) <= set(found)
        for number in found[len(before) :]:
            assert store.verify(f"humanoid@{number}") == ()
        before = found
    assert reported
    assert_clean(store)


def listed(store: Store) -> list[int]:
    """As `live`, but by the index: reading thousands of versions each time would be slow."""
    return [summary.number for summary in store.summaries("humanoid")[0]] if store.names() else []


def _publish_until_killed(store: Store, seconds: float) -> list[int]:
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            # Stop if the test ends.
            for turn in takewhile(lambda _: os.getppid() == parent, count()):
                manifest = tiny.skills_manifest().model_copy(
                    update={"card": {"turn": time.time_ns()}}
                )
                version = store.publish(manifest, FILES[turn % len(FILES)])
                os.write(writer, b"%d " % version.number)
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)  # it did not end by itself
    with open(reader, "rb") as pipe:
        return [int(number) for number in pipe.read().split()]
