"""Kill -9, at every system call and at any moment: a version is there whole or not at all, and
nothing needs repair.
"""

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
from tests.skills_store.contents import FILES, assert_spotless, live, publish


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
    # A call more than there were in the rehearsal: it is not reached, so the action comes to its
    # end.
    rehearsal = prepared(tmp_path / "rehearsal")
    leave_garbage(rehearsal)
    for step, call in enumerate([*traced.calls(lambda: act(rehearsal), among), ("fsync", 10_000)]):
        store = prepared(tmp_path / str(step))
        leave_garbage(store)
        died = traced.killed(lambda store=store: act(store), call)
        reopened = Store(store.root)
        assert reopened.verify() == ()  # no repair, not even of what it was about
        found = live(reopened)
        assert found in allowed
        # Which of the calls for memory is the n-th, differs from run to run; those that touch the
        # disk keep their order.
        if call[0] in traced.DISK:
            seen.append(found)
        # No number is lost, and none used twice.
        assert tiny.publish_tiny(reopened, seed=2).number == (4 if 3 in found else 3)
        assert_spotless(reopened)
    assert not died
    # Before, and from one call on after: there is a single commit point.
    assert seen == sorted(seen, key=allowed.index)
    assert seen[-1] == allowed[-1]


def leave_garbage(store: Store) -> None:
    """What a publish that was killed long ago has left."""
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
        assert_spotless(store)


def test_killed_at_a_few_random_moments(tmp_path: Path) -> None:
    check_random_kills(tmp_path, 15)


@pytest.mark.slow
def test_killed_at_1000_random_moments(tmp_path: Path) -> None:
    check_random_kills(tmp_path, 1000)


def check_random_kills(tmp_path: Path, times: int) -> None:
    """Every publish that was reported is there; of the one that was not, all or nothing; over one
    store's whole life.
    """
    store = Store(tmp_path / "store")
    moments = random.Random(0)
    reported = []
    before = []
    publish(Store(tmp_path / "rehearsal"))  # all that is imported for it is
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
    assert_spotless(store)


def listed(store: Store) -> list[int]:
    """As `live`, but by the index: thousands of versions are looked at a thousand times, and each
    read in full but once.
    """
    return [summary.number for summary in store.summaries("humanoid")[0]] if store.names() else []


def _publish_until_killed(store: Store, seconds: float) -> list[int]:
    heard, said = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            # No longer than there is a test.
            for turn in takewhile(lambda _: os.getppid() == parent, count()):
                manifest = tiny.skills_manifest().model_copy(
                    update={"card": {"turn": time.time_ns()}}
                )
                version = store.publish(manifest, FILES[turn % len(FILES)])
                os.write(said, b"%d " % version.number)
        finally:
            os._exit(1)
    os.close(said)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)  # it did not end by itself
    with open(heard, "rb") as pipe:
        return [int(number) for number in pipe.read().split()]
