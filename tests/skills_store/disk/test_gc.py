"""gc frees what no version needs once its grace is over, and nothing that may still be read."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from skills_store.disk import tombstones
from skills_store.disk.durable import create, lock_file
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import InvalidDuration, UnsafeSweep
from skills_store.store import Store
from tests import tiny
from tests.skills_store.contents import assert_clean, blobs, needed, staged

HOUR = 3600.0
T = TypeVar("T")


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        # Later than any file that a test writes.
        self.now = datetime.now(UTC) + timedelta(minutes=1)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    store = Store(tmp_path / "store", clock=clock)
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    return store


def abandoned(store: Store) -> list[Path]:
    """The leftovers of a killed publish: a blob without a version, and half a file."""
    left = [store.root / "blobs/sha256" / ("0" * 64), store.root / "staging/1-left"]
    for path in left:
        path.write_bytes(b"x" * 100)
    return left


def test_gc_of_an_intact_store_frees_nothing(store: Store) -> None:
    before = blobs(store)
    assert store.gc(grace=0).orphans == ()
    assert (blobs(store), store.verify()) == (before, ())


def test_leftovers_older_than_the_grace_are_freed(store: Store, clock: Clock) -> None:
    left = abandoned(store)
    assert store.gc(HOUR).orphans == ()
    clock.now += timedelta(hours=2)
    found = store.gc(HOUR, dry_run=True)
    assert ({orphan.path for orphan in found.orphans}, found.bytes) == (set(left), 200)
    assert all(path.exists() for path in left)  # a dry run
    assert store.gc(HOUR) == found
    assert not any(path.exists() for path in left)
    assert_clean(store)


def test_deleted_version_is_readable_for_the_grace_and_then_freed(
    store: Store, clock: Clock
) -> None:
    version = store.resolve("humanoid@2")  # as a reader keeps it
    clock.now += timedelta(days=30)  # old files, freshly deleted
    store.delete("humanoid@2", "old")
    clock.now += timedelta(minutes=59)
    store.gc(HOUR)
    assert store.read(version, "policy.onnx") == tiny.policy(1)
    clock.now += timedelta(minutes=2)
    store.gc(HOUR)
    assert blobs(store) == needed(store)
    assert version.digest not in blobs(store)
    assert store.verify() == ()


def test_gc_with_long_grace_works_after_a_short_one(store: Store) -> None:
    store.delete("humanoid@2", "old")
    store.gc(grace=0)
    assert store.gc(HOUR).orphans == ()
    assert_clean(store)


def test_shared_blob_is_freed_with_its_last_version(store: Store) -> None:
    files = tiny.skills_files(0) | {"style.onnx": tiny.style(9)}
    store.publish(tiny.skills_manifest(), files)  # policy and encoder are those of version 1
    store.delete("humanoid@1", "old")
    store.gc(grace=0)
    assert store.read(store.resolve("humanoid@4"), "policy.onnx") == tiny.policy(0)
    assert_clean(store)


def test_lease_keeps_blobs_of_a_concurrently_deleted_version(store: Store, clock: Clock) -> None:
    version = store.resolve("humanoid@2")
    store.lease("humanoid@2", 60)
    v = store.root / "skills/humanoid/v"
    long_ago = clock.now - timedelta(days=1)  # as from a restored backup
    stone = Tombstone(
        name="humanoid", number=2, digest=version.digest, at=long_ago, by="someone", why="old"
    )
    tombstones.commit(v, partial(create, store.root / "staging"), stone)
    for _ in range(2):
        store.gc(grace=90)
        assert store.read(version, "policy.onnx") == tiny.policy(1)
        clock.now += timedelta(seconds=149)  # expired, but within the grace
    clock.now += timedelta(seconds=2)
    store.gc(grace=90)
    assert blobs(store) == needed(store)
    assert list((store.root / "leases").iterdir()) == []  # expired, and swept


def test_gc_leaves_foreign_files(store: Store, clock: Clock) -> None:
    clock.now += timedelta(days=1)
    for orphan in ("blobs/sha256/README", "skills/.DS_Store", "skills/humanoid/notes.txt"):
        (store.root / orphan).write_text("x")
    assert store.gc(grace=0).orphans == ()


@pytest.mark.parametrize("part", ["record", "manifest", "tombstone", "lease"])
def test_gc_refuses_to_sweep_if_any_record_is_unreadable(store: Store, part: str) -> None:
    lease = store.lease("humanoid@3", 60)
    digest = store.resolve("humanoid@2").digest
    store.delete("humanoid@1", "old")
    abandoned(store)
    file, named = {
        "record": ("skills/humanoid/v/00000002.json", "humanoid@2"),
        "manifest": (f"blobs/sha256/{digest.removeprefix('sha256:')}", "humanoid@2"),
        "tombstone": ("skills/humanoid/v/00000001.deleted.json", "humanoid@1"),
        "lease": (f"leases/{lease.id}.json", lease.id),
    }[part]
    path = store.root / file
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(b"rot")
    before = blobs(store)
    for dry_run in (True, False):
        with pytest.raises(UnsafeSweep, match=f"nothing is swept.*{named}"):
            store.gc(grace=0, dry_run=dry_run)
    assert (blobs(store), len(staged(store))) == (before, 1)
    path.write_bytes(whole)  # restored
    assert_clean(store)


def test_gc_refuses_to_sweep_with_an_unknown_skill_folder(store: Store) -> None:
    (store.root / "skills/humanoid").rename(store.root / "skills/humanoid.bak")
    with pytest.raises(UnsafeSweep, match=r"humanoid\.bak is no skill's folder"):
        store.gc(grace=0)
    (store.root / "skills/humanoid.bak").rename(store.root / "skills/other")
    with pytest.raises(UnsafeSweep, match="other@1"):
        store.gc(grace=0)


def test_gc_resumes_after_a_damaged_version_is_deleted(store: Store, clock: Clock) -> None:
    path = store.root / "skills/humanoid/v/00000002.json"
    path.chmod(0o644)
    path.write_bytes(b"rot")
    store.delete("humanoid@2", "rotten")
    with pytest.raises(UnsafeSweep, match="humanoid@2"):
        store.gc(HOUR)  # its files have a grace, too
    clock.now += timedelta(hours=2)
    assert len(store.gc(HOUR).orphans) == 4  # three files and their manifest
    assert blobs(store) == needed(store)


def test_gc_of_a_missing_store_creates_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere")
    assert store.gc(grace=0).orphans == ()
    assert not store.root.exists()
    for grace in (-1, float("nan")):
        with pytest.raises(InvalidDuration, match="a grace is"):
            store.gc(grace)


def test_gc_waits_for_a_publish_in_progress(
    store: Store, blocked_flock: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blobs on the disk whose record is not yet there look like garbage."""
    at_the_record = threading.Event()
    go_on = threading.Event()
    link = os.link

    def late(*args: Any) -> None:
        at_the_record.set()
        go_on.wait()
        link(*args)

    monkeypatch.setattr(os, "link", late)
    publisher = threading.Thread(target=lambda: tiny.publish_tiny(store, seed=9))
    sweeper = threading.Thread(target=lambda: store.gc(grace=0))
    publisher.start()
    at_the_record.wait()
    sweeper.start()
    assert blocked_flock.wait(60)
    go_on.set()
    publisher.join()
    sweeper.join()
    assert store.read(store.resolve("humanoid@4"), "policy.onnx") == tiny.policy(9)
    assert store.verify() == ()


def test_readers_do_not_block_on_locks(store: Store) -> None:
    with (
        lock_file(store.root / "lock/queue"),
        lock_file(store.root / "lock/access"),
        lock_file(store.root / "skills/humanoid/lock"),
    ):
        assert _run_within(
            lambda: store.read(store.resolve("humanoid@2"), "policy.onnx")
        ) == tiny.policy(1)
        assert _run_within(store.verify) == ()
        assert _run_within(lambda: store.gc(dry_run=True).orphans) == ()


def test_gc_is_not_starved_by_overlapping_writers(store: Store) -> None:
    stop = threading.Event()

    def lease_and_release() -> None:  # there is a writer at any time
        while not stop.is_set():
            store.release(store.lease("humanoid@1", 60).id)

    writers = [threading.Thread(target=lease_and_release) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        time.sleep(0.05)
        _run_within(lambda: store.gc(grace=0), 10)
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def _run_within(action: Callable[[], T], seconds: float = 5) -> T:
    results: list[T] = []
    thread = threading.Thread(target=lambda: results.append(action()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "it waits for a lock"
    return results[0]
