"""Concurrent writers, readers and gc: gap-free numbers, no lost alias move, no missing blob."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from skills_store.disk.alias_move import AliasMove
from skills_store.errors import DeletedVersion, UnknownSkill
from skills_store.store import Store
from tests import tiny
from tests.skills_store.contents import assert_clean

FORK = multiprocessing.get_context("fork")


def write(root: Path, writer: int, turns: int) -> None:
    """Publish and move the shared alias; publish and delete a duplicate after every tenth."""
    store = Store(root)
    files = tiny.skills_files(writer)
    for turn in range(turns):
        manifest = tiny.skills_manifest().model_copy(
            update={"card": {"writer": writer, "turn": turn}}
        )
        version = store.publish(manifest, files)
        store.alias("humanoid", "canary", version.number, f"{writer}:{turn}")
        if turn % 10 == 9:
            store.delete(store.publish(manifest, files).ref, "a duplicate")


def read(root: Path, done: Event) -> None:
    """Every version that resolves can be read with its published bytes."""
    store = Store(root)
    reads = 0
    while not done.is_set():
        for ref in ("humanoid@latest", "humanoid@canary", "humanoid@1"):
            try:
                version = store.resolve(ref)
                for file in version.manifest.files:
                    store.read(version, file)  # CorruptBlob if a blob is missing
                reads += 1
            except (UnknownSkill, DeletedVersion):  # none yet, or the latest was just deleted
                continue
        # Leave the processor to the writers.
        time.sleep(0.01)
    assert reads


def sweep(root: Path, done: Event) -> None:
    """Without a grace: a duplicate shares its blobs with a live version, so readers lose none."""
    store = Store(root)
    while not done.is_set():
        began = time.monotonic()
        store.gc(grace=0)
        # gc takes longer the larger the store is, and blocks the writers.
        time.sleep(0.1 + 4 * (time.monotonic() - began))


def run_together(tmp_path: Path, writers: int, turns: int, readers: int) -> None:
    store = Store(tmp_path / "store")
    done = FORK.Event()
    tiny.publish_tiny(store)
    store.alias("humanoid", "canary", 1, "first")
    working = _started([lambda w=w: write(store.root, w, turns) for w in range(writers)])
    watching = _started(
        [lambda: read(store.root, done)] * readers + [lambda: sweep(store.root, done)]
    )
    for process in working:
        process.join()
    done.set()
    for process in watching:
        process.join()
    assert [process.exitcode for process in (*working, *watching)] == [0] * (writers + readers + 1)

    duplicates = writers * (turns // 10)
    events = store.log("humanoid")
    moves = [event for event in events if isinstance(event, AliasMove)]
    assert len(events) - len(moves) == duplicates
    deleted = {event.number for event in events if not isinstance(event, AliasMove)}
    numbers = [version.number for version in store.versions("humanoid")]
    # Gap-free.
    assert sorted([*numbers, *deleted]) == list(range(1, 1 + writers * turns + duplicates + 1))
    # Every move of every writer is there, once, and each begins where the one before ended.
    assert [move.rev for move in moves] == list(range(1, writers * turns + 2))
    assert {move.why for move in moves[1:]} == {
        f"{w}:{t}" for w in range(writers) for t in range(turns)
    }
    assert [move.previous for move in moves[1:]] == [move.number for move in moves[:-1]]
    assert store.resolve("humanoid@canary").number == moves[-1].number
    assert_clean(store)


def _started(actions: list[Callable[[], None]]) -> Sequence[BaseProcess]:
    processes = [FORK.Process(target=action) for action in actions]
    for process in processes:
        process.start()
    return processes


def test_a_few_writers_and_readers(tmp_path: Path) -> None:
    run_together(tmp_path, writers=3, turns=10, readers=2)


@pytest.mark.slow
def test_8_writers_of_250_publishes_and_8_readers(tmp_path: Path) -> None:
    run_together(tmp_path, writers=8, turns=250, readers=8)
