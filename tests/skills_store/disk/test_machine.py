"""Random histories of all operations on a store, checked against a small model.

After every sweep the disk has exactly the blobs of the model: all that are needed, and no other
past its grace.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from skills_store.disk import layout, store_folder
from skills_store.disk.blobs import describe
from skills_store.disk.durable import create
from skills_store.disk.leases import Lease
from skills_store.errors import (
    DeletedVersion,
    NoEarlierVersion,
    Regression,
    UnknownAlias,
    VersionInUse,
)
from skills_store.store import Store, Version
from tests import tiny

SEEDS = st.integers(0, 3)
FILES = {seed: tiny.skills_files(seed) for seed in range(4)}
ALIASES = st.sampled_from(["prod", "canary"])
SPANS = st.sampled_from([1, 60, 3600])  # s
GRACES = st.sampled_from([0, 30, 3600])  # s
START = datetime(2100, 1, 1, tzinfo=UTC)  # later than any file's own time
MEMORY = Path("/dev/shm")


@dataclass
class Model:
    """The expected state, in which a file is only its digest."""

    now: datetime = START
    live: dict[str, Version] = field(default_factory=dict)  # by ref
    deleted: dict[str, tuple[Version, datetime]] = field(default_factory=dict)
    # Highest number ever.
    taken: dict[str, int] = field(default_factory=lambda: {"humanoid": 0, "reach": 0})
    # By alias: its versions, the current one last.
    targets: dict[str, list[int]] = field(default_factory=dict)
    guarded: dict[str, bool] = field(default_factory=lambda: {"prod": True, "canary": False})
    leases: dict[str, Lease] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)  # by digest of the blob

    def count_references(self, version: Version) -> int:
        """How many aliases, leases and controllers use it."""
        aliased = sum(
            stack[-1:] == [version.number]
            for stack in self.targets.values()
            if version.name == "humanoid"
        )
        leased = sum(
            lease.ref == version.ref and lease.until > self.now for lease in self.leases.values()
        )
        duplicates = [
            v for v in self.live.values() if v.digest == version.digest and v.ref != version.ref
        ]
        tasks = [v.manifest.task for v in self.live.values() if v.manifest.task]
        bound = 0 if duplicates else sum(task.parent.digest == version.digest for task in tasks)
        return aliased + leased + bound

    def needed(self, grace: float) -> set[str]:
        since = self.now - timedelta(seconds=grace)
        recent = [version for version, at in self.deleted.values() if at > since]
        return set().union(*map(digests, [*self.live.values(), *recent]))

    def kept(self, grace: float) -> set[str]:
        young = {
            digest
            for digest, born in self.written.items()
            if born > self.now - timedelta(seconds=grace)
        }
        # Without what a sweep of a shorter grace has freed; by an invariant below, that is nothing
        # live.
        return (self.needed(grace) | young) & set(self.written)


def survival(seed: int) -> float:
    # Differs by seed, so that some moves are regressions.
    return (3 - seed) / 4


def digests(version: Version) -> set[str]:
    return {version.digest, *(blob.digest for blob in version.manifest.files.values())}


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.model = Model()
        self.store = Store(Path(self.folder.name) / "store", clock=lambda: self.model.now)

    def teardown(self) -> None:
        if store_folder.is_store(self.store.root):
            assert self.store.verify() == ()
        self.folder.cleanup()

    @rule(seed=SEEDS)
    def publish(self, seed: int) -> None:
        manifest = tiny.skills_manifest().model_copy(update={"card": {"survival": survival(seed)}})
        self._published(self.store.publish(manifest, FILES[seed]))

    @precondition(lambda self: self._libraries())
    @rule(data=st.data(), seed=SEEDS)
    def publish_controller(self, data: st.DataObject, seed: int) -> None:
        parent = data.draw(st.sampled_from(self._libraries()))
        self._published(tiny.publish_tiny_controller(self.store, parent, seed=seed))

    @rule(seed=SEEDS)
    def publish_and_crash_before_the_record(self, seed: int) -> None:
        """Leave what test_crash finds: whole blobs without a version, half a file in staging."""
        blobs = self.store.root / "blobs/sha256"
        staging = self.store.root / "staging"
        for directory in (blobs, staging):
            directory.mkdir(parents=True, exist_ok=True)
        layout.write_marker(self.store.root, "it", partial(create, staging))
        data = FILES[seed]["style.onnx"] + b"other weights"
        (blobs / describe(data).digest.removeprefix("sha256:")).write_bytes(data)
        (staging / f"1-{seed}").write_bytes(data[:100])
        self.model.written[describe(data).digest] = self.model.now
        self._date()

    @precondition(lambda self: self._libraries())
    @rule(data=st.data(), alias=ALIASES, force=st.booleans())
    def move(self, data: st.DataObject, alias: str, force: bool) -> None:
        version = data.draw(st.sampled_from(self._libraries()))
        stack = self.model.targets.get(alias, [])
        if stack and self.model.guarded[alias] and not force:
            current = self.model.live[f"humanoid@{stack[-1]}"]
            if version.manifest.card["survival"] < current.manifest.card["survival"]:
                with pytest.raises(Regression):
                    self.store.alias("humanoid", alias, version.number)
                return
        self.store.alias("humanoid", alias, version.number, force=force)
        stack = self.model.targets.setdefault(alias, [])
        if stack[-1:] != [version.number]:
            stack.append(version.number)

    @precondition(lambda self: self.model.taken["humanoid"])
    @rule(alias=ALIASES)
    def rollback(self, alias: str) -> None:
        stack = self.model.targets.get(alias, [])
        there = [
            at
            for at, n in enumerate(stack)
            if n != stack[-1] and f"humanoid@{n}" in self.model.live
        ]
        if there:
            self.store.rollback("humanoid", alias)
            del stack[there[-1] + 1 :]
        else:
            with pytest.raises(NoEarlierVersion if stack else UnknownAlias):
                self.store.rollback("humanoid", alias)

    @precondition(lambda self: self.model.targets)
    @rule(data=st.data(), on=st.booleans())
    def protect(self, data: st.DataObject, on: bool) -> None:
        alias = data.draw(st.sampled_from(sorted(self.model.targets)))
        self.store.protect("humanoid", alias, on=on)
        self.model.guarded[alias] = on

    @precondition(lambda self: self.model.live)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(list(self.model.live.values())))
        if references := self.model.count_references(version):
            with pytest.raises(VersionInUse) as refused:
                self.store.delete(version.ref, "old")
            assert len(refused.value.references) == references
        else:
            self.store.delete(version.ref, "old")
            self.model.deleted[version.ref] = (self.model.live.pop(version.ref), self.model.now)

    @precondition(lambda self: self.model.live)
    @rule(data=st.data(), seconds=SPANS)
    def lease(self, data: st.DataObject, seconds: int) -> None:
        version = data.draw(st.sampled_from(list(self.model.live.values())))
        granted = self.store.lease(version.ref, seconds)
        self.model.leases[granted.id] = granted
        self._date()

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        chosen = data.draw(
            st.sampled_from(sorted(self.model.leases, key=lambda id: self.model.leases[id].at))
        )
        self.store.release(chosen)
        del self.model.leases[chosen]

    @rule(seconds=SPANS)
    def wait(self, seconds: int) -> None:
        self.model.now += timedelta(seconds=seconds)

    @rule(grace=GRACES)
    def sweep(self, grace: int) -> None:
        kept = self.model.kept(grace)
        since = self.model.now - timedelta(seconds=grace)
        self.store.gc(grace)
        assert self._blobs() == kept
        self.model.written = {
            digest: born for digest, born in self.model.written.items() if digest in kept
        }
        self.model.leases = {
            id: lease for id, lease in self.model.leases.items() if lease.until > since
        }
        assert {path.stem for path in self._files("leases")} == set(self.model.leases)
        assert all(path.stat().st_mtime > since.timestamp() for path in self._files("staging"))
        for version in self.model.live.values():
            assert {
                file: len(self.store.read(version, file)) for file in version.manifest.files
            } == {file: blob.size for file, blob in version.manifest.files.items()}

    @invariant()
    def names_and_aliases_resolve_as_in_the_model(self) -> None:
        for name, highest in self.model.taken.items():
            live = [v for v in self.model.live.values() if v.name == name]
            assert (name in self.store.names()) == bool(live)
            if live:
                assert self.store.latest(name) == max(v.number for v in live) <= highest
        for alias, stack in self.model.targets.items():
            assert self.store.resolve(f"humanoid@{alias}").number == stack[-1]
        if self.model.taken["humanoid"]:
            guarded = {alias for alias in self.model.targets if self.model.guarded[alias]}
            assert self.store.list_protected("humanoid") == guarded

    @invariant()
    def live_versions_are_whole_and_deleted_ones_not_found(self) -> None:
        assert self.model.needed(grace=0) <= self._blobs()
        for ref in list(self.model.deleted)[-3:]:
            with pytest.raises(DeletedVersion):
                self.store.resolve(ref)

    def _published(self, version: Version) -> None:
        self.model.taken[version.name] += 1
        assert version.number == self.model.taken[version.name]  # the next unused one
        self.model.live[version.ref] = version
        self._date()

    def _libraries(self) -> list[Version]:
        return [version for version in self.model.live.values() if version.name == "humanoid"]

    def _date(self) -> None:
        """Give new files the time of the model."""
        moment = self.model.now.timestamp()
        for path in [*self._files("blobs/sha256"), *self._files("staging"), *self._files("leases")]:
            if path.stat().st_mtime < START.timestamp():
                os.utime(path, (moment, moment))
        for digest in self._blobs():
            self.model.written.setdefault(digest, self.model.now)

    def _blobs(self) -> set[str]:
        return {f"sha256:{path.name}" for path in self._files("blobs/sha256")}

    def _files(self, folder: str) -> list[Path]:
        directory = self.store.root / folder
        return sorted(directory.iterdir()) if directory.is_dir() else []


def explore(histories: int, steps: int) -> None:
    how: dict[str, Any] = {
        "deadline": None,
        "database": None,
        "suppress_health_check": list(HealthCheck),
    }
    run: Callable[..., None] = run_state_machine_as_test
    run(StoreMachine, settings=settings(max_examples=histories, stateful_step_count=steps, **how))


def test_random_histories() -> None:
    explore(histories=15, steps=30)


@pytest.mark.slow
def test_50_000_random_steps() -> None:
    explore(histories=1000, steps=50)
