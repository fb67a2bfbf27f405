"""A deletion is final, its number is not reused, and a version in use is not deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skills_store import publish_receipt
from skills_store.disk.alias_move import AliasMove
from skills_store.disk.tombstones import Tombstone
from skills_store.errors import (
    CorruptRecord,
    DeletedVersion,
    InvalidDuration,
    InvalidReference,
    StoreError,
    UnknownLease,
    UnknownParent,
    UnknownVersion,
    VersionInUse,
)
from skills_store.store import Store
from tests import tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    return store


def test_deleted_version_error_has_author_time_and_reason(store: Store) -> None:
    gone = store.resolve("humanoid@2")
    stone = store.delete("humanoid@2", "it limps")
    assert (stone.number, stone.digest, stone.why) == (2, gone.digest, "it limps")
    for ref in ("humanoid@2", gone.pinned):
        with pytest.raises(
            DeletedVersion, match=rf"was deleted .* by {stone.by}: it limps; there are: 1, 3"
        ):
            store.resolve(ref)
    assert [v.number for v in store.versions("humanoid")] == [1, 3]
    assert store.verify() == ()  # the chain of records stays valid


def test_number_of_a_deleted_version_is_never_reused(store: Store) -> None:
    store.delete("humanoid@3", "old")
    assert store.latest("humanoid") == 2
    assert tiny.publish_tiny(store, seed=2).number == 4
    for number in (1, 2, 4):
        store.delete(f"humanoid@{number}", "old")
    assert store.names() == ()
    with pytest.raises(
        UnknownVersion, match="no version 'latest' in humanoid; there are no versions"
    ):
        store.resolve("humanoid")
    assert tiny.publish_tiny(store).number == 5
    assert store.verify() == ()


def test_rewritten_record_of_a_deleted_version_is_reported(store: Store) -> None:
    store.delete("humanoid@2", "old")
    record = store.root / "skills/humanoid/v/00000002.json"
    record.chmod(0o644)
    record.write_bytes(record.read_bytes().replace(b'"created":"20', b'"created":"19'))
    assert [(f.ref, f.code) for f in store.verify()] == [("humanoid@2", "corrupt_record")]


def test_delete_of_version_in_use_is_refused_listing_references(store: Store) -> None:
    parent = store.resolve("humanoid@1")
    tiny.publish_tiny_controller(store, parent)
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "canary", 1)
    lease = store.lease("humanoid@1", 600, "rollout")
    with pytest.raises(VersionInUse) as refused:
        store.delete("humanoid@1", "old")
    message = str(refused.value)
    for reference in (
        "alias canary",
        "alias prod",
        f"lease {lease.id[:8]}",
        "rollout",
        "controller reach@1",
    ):
        assert reference in message
    assert len(refused.value.references) == 4
    assert store.resolve("humanoid@1") == parent
    store.delete("reach@1", "its parent is to go")
    store.release(lease.id)
    for alias in ("prod", "canary"):
        store.alias("humanoid", alias, 2)
    assert store.delete("humanoid@1", "old").number == 1


def test_controller_parent_resolves_by_digest_across_numbers(
    store: Store,
) -> None:
    controller = tiny.publish_tiny_controller(store, store.resolve("humanoid@1"))
    duplicate = tiny.publish_tiny(store)
    store.delete("humanoid@1", "published twice")
    assert store.parent(controller.manifest) == duplicate
    with pytest.raises(VersionInUse, match="controller reach@1"):
        store.delete(duplicate.ref, "the last of its kind")


def test_no_controller_is_published_for_a_deleted_parent(store: Store) -> None:
    parent = store.resolve("humanoid@1")
    store.delete("humanoid@1", "old")
    with pytest.raises(UnknownParent):
        tiny.publish_tiny_controller(store, parent)


def test_unreadable_alias_blocks_deletion_until_forced(store: Store) -> None:
    store.alias("humanoid", "prod", 2)
    file = store.root / "skills/humanoid/moves/prod/00000001.json"
    file.chmod(0o644)
    file.write_bytes(b"rot")
    with pytest.raises(
        VersionInUse, match=r"humanoid@prod is refused: .*; a move of prod with --force repairs it"
    ):
        store.delete("humanoid@1", "old")
    store.alias("humanoid", "prod", 2, force=True)
    store.delete("humanoid@1", "old")


@pytest.mark.parametrize("ref", ["humanoid", "humanoid@latest", "humanoid@prod"])
def test_delete_needs_a_number_or_digest_and_a_reason(store: Store, ref: str) -> None:
    store.alias("humanoid", "prod", 1)
    with pytest.raises(InvalidReference, match="by number or digest"):
        store.delete(ref, "old")
    with pytest.raises(StoreError, match="say why"):
        store.delete("humanoid@2", " ")
    with pytest.raises(UnknownVersion, match="no version '9'"):
        store.delete("humanoid@9", "old")
    assert [v.number for v in store.versions("humanoid")] == [1, 2, 3]


def test_deleting_twice_is_refused(store: Store) -> None:
    store.delete("humanoid@1", "old")
    with pytest.raises(DeletedVersion, match="old"):
        store.delete("humanoid@1", "again")


@pytest.mark.parametrize("part", ["record", "manifest"])
def test_a_damaged_version_can_be_deleted(store: Store, part: str) -> None:
    damaged = store.resolve("humanoid@2")
    path = store.root / (
        "skills/humanoid/v/00000002.json"
        if part == "record"
        else f"blobs/sha256/{damaged.digest.removeprefix('sha256:')}"
    )
    path.chmod(0o644)
    path.write_bytes(b"rot")
    stone = store.delete("humanoid@2", "rotten")
    assert stone.digest == (None if part == "record" else damaged.digest)
    assert store.survey("humanoid").faults == ()
    assert tiny.publish_tiny(store).number == 4


def test_unreadable_tombstone_still_marks_a_deletion(store: Store) -> None:
    store.delete("humanoid@2", "old")
    stone = store.root / "skills/humanoid/v/00000002.deleted.json"
    stone.chmod(0o644)
    stone.write_bytes(b"rot")
    with pytest.raises(DeletedVersion, match="its tombstone cannot be read"):
        store.resolve("humanoid@2")
    assert [(f.ref, f.code) for f in store.verify()] == [("humanoid@2", "corrupt_record")]
    assert [v.number for v in store.versions("humanoid")] == [1, 3]


def test_log_lists_moves_and_deletions_in_order(store: Store) -> None:
    store.alias("humanoid", "prod", 1)
    store.alias("humanoid", "prod", 2)
    store.delete("humanoid@1", "old")
    store.alias("humanoid", "prod", 3)
    listed = [(type(event), event.number) for event in store.log("humanoid")]
    assert listed == [(AliasMove, 1), (AliasMove, 2), (Tombstone, 1), (AliasMove, 3)]


def test_receipt_of_a_deleted_version_is_ignored(store: Store, tmp_path: Path) -> None:
    version = publish_receipt.publish(
        tmp_path, store, tiny.skills_manifest(), tiny.skills_files(9), 100
    )
    assert publish_receipt.find_published(tmp_path, store, 100) == version
    store.delete(version.ref, "old")
    assert publish_receipt.find_published(tmp_path, store, 100) is None


def test_lease_blocks_deletion_until_it_expires(tmp_path: Path) -> None:
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    store = Store(tmp_path / "store", clock=lambda: now[0])
    tiny.publish_tiny(store)
    lease = store.lease("humanoid@latest", 90, "rollout")
    assert (lease.ref, lease.until - lease.at) == ("humanoid@1", timedelta(seconds=90))
    now[0] += timedelta(seconds=89)
    assert store.leases() == (lease,)
    with pytest.raises(VersionInUse, match="rollout"):
        store.delete("humanoid@1", "old")
    now[0] += timedelta(seconds=1)
    assert store.leases() == ()
    store.delete("humanoid@1", "old")


def test_lease_prefix_releases_it_and_unknown_is_refused(store: Store) -> None:
    lease = store.lease("humanoid@1", 90)
    with pytest.raises(UnknownLease, match=lease.id):
        store.release("nope")
    with pytest.raises(UnknownLease):
        store.release("")
    store.release(lease.id[:8])
    assert store.leases() == ()
    with pytest.raises(UnknownLease, match="there are no leases"):
        store.release(lease.id)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
def test_lease_duration_must_be_positive_and_bounded(store: Store, seconds: float) -> None:
    with pytest.raises(InvalidDuration, match="a lease is"):
        store.lease("humanoid@1", seconds)


def test_failed_lease_creates_no_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere")
    with pytest.raises(StoreError):
        store.lease("humanoid@1", 60)
    assert not store.root.exists()


def test_damaged_lease_blocks_deletion_until_released(store: Store) -> None:
    lease = store.lease("humanoid@1", 60)
    file = store.root / f"leases/{lease.id}.json"
    file.chmod(0o644)
    file.write_bytes(b"rot")
    with pytest.raises(CorruptRecord, match=lease.id):
        store.delete("humanoid@2", "old")
    store.release(lease.id)
    store.delete("humanoid@2", "old")
