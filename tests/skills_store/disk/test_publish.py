"""A publish is all or nothing, and published files never change."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skills_store.disk import store_folder
from skills_store.errors import GateRefusal, InvalidName, UnknownParent
from skills_store.manifest import Blob
from skills_store.store import Store
from tests import tiny

STEPS = ("open", "write", "fsync", "replace", "link", "unlink", "mkdir")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_published_version_reads_back_unchanged(store: Store) -> None:
    published = tiny.publish_tiny(store)
    found = Store(store.root).resolve("humanoid")
    assert found == published
    assert found.manifest == published.manifest
    assert (found.ref, found.number) == ("humanoid@1", 1)
    assert {file: store.read(found, file) for file in found.manifest.files} == tiny.skills_files()
    assert store.verify() == ()


def test_reading_writes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere")
    assert store.names() == ()
    assert store.gc().orphans == ()
    assert not store.root.exists()


def test_published_files_are_never_touched_again(store: Store) -> None:
    tiny.publish_tiny(store)
    before = _snapshot(store.root)
    tiny.publish_tiny(store, seed=1)
    tiny.publish_tiny(store)
    store.alias("humanoid", "prod", 2)
    after = _snapshot(store.root)
    assert {path: after[path] for path in before} == before


def test_manifest_is_canonical_json_named_by_its_digest(store: Store) -> None:
    version = tiny.publish_tiny(store)
    data = (store.root / "blobs/sha256" / version.digest.removeprefix("sha256:")).read_bytes()
    plain = json.dumps(json.loads(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert plain.encode() == data


def test_same_content_has_the_same_digest(store: Store) -> None:
    first = tiny.publish_tiny(store)
    second = tiny.publish_tiny(store)
    assert (first.digest, first.number, second.number) == (second.digest, 1, 2)
    assert store.resolve(first.pinned) == first  # a digest resolves to the first of its numbers


def test_publish_recomputes_file_digests(store: Store) -> None:
    wrong = {"policy.onnx": Blob(digest="sha256:" + "0" * 64, size=1)}
    version = store.publish(
        tiny.skills_manifest().model_copy(update={"files": wrong}), tiny.skills_files()
    )
    assert store.verify(version.ref) == ()


@pytest.mark.parametrize(
    "name", ["..", "../x", "a/b", "/tmp/x", "", "A", "x\n", ".hidden", "a" * 65]
)
def test_a_name_never_becomes_a_path(store: Store, name: str) -> None:
    manifest = tiny.skills_manifest().model_copy(update={"name": name})
    with pytest.raises(InvalidName):
        store.publish(manifest, tiny.skills_files())
    for call in (store.versions, store.aliases, store.log, store.survey, store.latest):
        with pytest.raises(InvalidName):
            call(name)
    assert not store.root.exists()


@pytest.mark.parametrize("file", ["../other", "a/b.onnx", ".x", ""])
def test_a_file_name_never_becomes_a_path(store: Store, file: str) -> None:
    with pytest.raises(InvalidName):
        store.publish(tiny.skills_manifest(), tiny.skills_files() | {file: b""})


def test_graph_files_and_graphs_must_match(store: Store) -> None:
    files = tiny.skills_files()
    with pytest.raises(GateRefusal, match=r"style\.onnx is missing"):
        store.publish(tiny.skills_manifest(), {k: v for k, v in files.items() if k != "style.onnx"})
    with pytest.raises(GateRefusal, match="belongs to no graph"):
        store.publish(tiny.skills_manifest(), files | {"extra.onnx": files["policy.onnx"]})
    assert store.names() == ()


def test_a_card_with_nan_is_refused(store: Store) -> None:
    manifest = tiny.skills_manifest().model_copy(update={"card": {"survival": float("nan")}})
    with pytest.raises(GateRefusal, match="not plain JSON"):
        store.publish(manifest, tiny.skills_files())


def test_controller_needs_its_parent_in_the_store(store: Store, tmp_path: Path) -> None:
    parent = tiny.publish_tiny(Store(tmp_path / "elsewhere"))
    with pytest.raises(UnknownParent, match="humanoid@sha256"):
        tiny.publish_tiny_controller(store, parent)
    tiny.publish_tiny(store, seed=5)
    # The same bytes under another number suffice: a parent is bound by its digest.
    mine = tiny.publish_tiny(store)
    assert store.parent(tiny.publish_tiny_controller(store, parent).manifest) == mine


def test_concurrent_publishers_take_gap_free_numbers(store: Store) -> None:
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_publish_many, args=(store.root, seed, 6)) for seed in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        if store.names():
            assert store.survey("humanoid").faults == ()  # a reader sees no partial version
    assert [worker.exitcode for worker in workers] == [0] * 4
    versions = store.versions("humanoid")
    assert [v.number for v in versions] == list(range(1, 25))
    assert len({v.digest for v in versions}) == 4
    assert store.verify() == ()
    assert list((store.root / "staging").iterdir()) == []


def _publish_many(root: Path, seed: int, count: int) -> None:
    for _ in range(count):
        tiny.publish_tiny(Store(root), seed=seed)


@pytest.mark.parametrize("first", [True, False], ids=["empty store", "second version"])
def test_publish_killed_at_any_step_is_all_or_nothing(tmp_path: Path, first: bool) -> None:
    outcomes = []
    was_killed = True
    for step in range(1, 400):
        store = Store(tmp_path / str(step))
        if not first:
            tiny.publish_tiny(store)
        was_killed = _kill_at_step(lambda store=store: tiny.publish_tiny(store, seed=1), step)
        reopened = Store(store.root)
        seen = len(reopened.versions("humanoid")) if reopened.names() else 0
        # The first calls only create its folder.
        if store_folder.is_store(reopened.root):
            assert reopened.verify() == ()
        outcomes.append(seen - (not first))
        # No repair is needed and no number lost.
        assert tiny.publish_tiny(reopened, seed=2).number == seen + 1
        if not was_killed:
            break
    assert was_killed is False
    # Absent until the single commit point, and whole after it.
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1}


def test_alias_move_killed_at_any_step_is_all_or_nothing(store: Store) -> None:
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    moves = [1]
    target = 1
    store.alias("humanoid", "prod", 1)
    for step in range(1, 100):
        target = 2 if moves[-1] == 1 else 1
        was_killed = _kill_at_step(
            lambda target=target: store.alias("humanoid", "prod", target), step
        )
        now = store.resolve("humanoid@prod").number
        moves += [now] if now != moves[-1] else []
        # The log has each move that took effect, and no other.
        assert [m.number for m in store.log("humanoid")] == moves
        if not was_killed:
            break
    assert moves[-1] == target
    assert len(moves) > 2
    assert store.verify() == ()


def _kill_at_step(action: Callable[[], object], step: int) -> bool:
    """Run `action` in a child that kills itself after its `step`-th call to the system. False: it
    made fewer.
    """
    child = os.fork()
    if child == 0:
        calls = iter(range(1, step + 1))

        def killing(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                result = real(*args, **kwargs)
                if next(calls) == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return call

        for name in STEPS:
            setattr(os, name, killing(getattr(os, name)))
        try:
            action()
        finally:
            os._exit(0 if sys.exc_info()[0] is None else 1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _snapshot(root: Path) -> dict[Path, tuple[bytes, int, int]]:
    kept = [p for p in root.rglob("*") if p.is_file() and p.parent.name in ("sha256", "v")]
    return {p: (p.read_bytes(), p.stat().st_ino, p.stat().st_mtime_ns) for p in kept}
