"""The index of a listing: the files override it, and a listing is correct without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from skills_store.store import Store
from skills_store.version import summarize
from tests import tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    return store


def index(store: Store) -> Path:
    return store.root / "skills/humanoid/index.jsonl"


def list_from_files(store: Store) -> tuple[object, ...]:
    survey = store.survey("humanoid")
    return tuple(map(summarize, survey.versions)), survey.faults


def manifest_of(store: Store, number: int) -> Path:
    return (
        store.root
        / "blobs/sha256"
        / store.resolve(f"humanoid@{number}").digest.removeprefix("sha256:")
    )


@pytest.mark.parametrize(
    "content",
    [None, b"", b"rot\n", b'{"record":[0,0]}\n\0\0'],
    ids=["gone", "empty", "rot", "torn"],
)
def test_listing_is_correct_with_a_damaged_or_missing_index(
    store: Store, content: bytes | None
) -> None:
    whole = index(store).read_bytes()
    index(store).unlink() if content is None else index(store).write_bytes(
        whole[: len(whole) // 2] + content
    )
    assert store.summaries("humanoid") == list_from_files(store)
    tiny.publish_tiny(store, seed=4)  # appends to it
    assert store.summaries("humanoid") == list_from_files(store)
    store.gc()
    assert len(index(store).read_bytes().splitlines()) == 4  # rebuilt
    tiny.publish_tiny(store, seed=5)
    assert store.summaries("humanoid") == list_from_files(store)


def test_listing_reads_no_indexed_manifest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list_from_files(store)
    monkeypatch.setattr(
        "skills_store.disk.blobs.Blobs.read", lambda *_: pytest.fail("a manifest was read")
    )
    assert store.summaries("humanoid") == expected


# without its record a version does not exist, so only a manifest may be missing
@pytest.mark.parametrize(
    ("part", "content"), [("record", b"rot"), ("manifest", b"rot"), ("manifest", None)]
)
def test_damage_is_listed_despite_the_index(store: Store, part: str, content: bytes | None) -> None:
    path = (
        manifest_of(store, 2)
        if part == "manifest"
        else store.root / "skills/humanoid/v/00000002.json"
    )
    path.chmod(0o644)
    path.unlink() if content is None else path.write_bytes(content)
    summaries, faults = store.summaries("humanoid")
    assert [s.number for s in summaries] == [1, 3]
    assert [f.ref for f in faults] == ["humanoid@2"]
    assert (summaries, faults) == list_from_files(store)


def test_deleted_version_in_the_index_is_not_listed(store: Store) -> None:
    store.delete("humanoid@2", "old")
    assert [s.number for s in store.summaries("humanoid")[0]] == [1, 3]
    assert store.summaries("humanoid") == list_from_files(store)


def test_publish_succeeds_if_the_index_is_unwritable(store: Store) -> None:
    index(store).unlink()
    index(store).mkdir()
    assert tiny.publish_tiny(store, seed=4).number == 4
    assert store.summaries("humanoid") == list_from_files(store)
    store.gc()
    assert store.summaries("humanoid") == list_from_files(store)
