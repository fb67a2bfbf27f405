"""Damaged files are refused by digest and named; everything else can still be read."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from skills_store.errors import CorruptBlob, CorruptRecord, StoreError, UnknownAlias
from skills_store.store import Store, Version
from tests import tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 2)
    return store


def test_no_message_shows_a_python_bytes_literal(store: Store) -> None:
    """Each file of the store in turn holds bytes that are no text."""
    for path in sorted(path for path in store.root.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        _overwrite(path, b'{"\xff\x00' + whole[:20])
        messages = []
        try:
            messages += [fault.message for fault in Store(store.root).verify()]
        except StoreError as error:
            messages.append(str(error))
        _overwrite(path, whole)
        assert not re.search(r"""\bb['"]""", " ".join(messages)), messages


def test_a_flipped_bit_is_refused_and_the_others_served(store: Store) -> None:
    damaged = store.resolve("humanoid@2")
    path = _blob(store, damaged.manifest.files["policy.onnx"].digest)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    _overwrite(path, bytes(data))
    with pytest.raises(CorruptBlob, match=r"policy\.onnx of humanoid@2 is refused: .*hashes to"):
        store.read(damaged, "policy.onnx")
    assert store.read(damaged, "encoder.onnx") == tiny.encoder(1)
    assert store.read(store.resolve("humanoid@3"), "policy.onnx") == tiny.policy(2)
    assert [(f.ref, f.code) for f in store.verify()] == [("humanoid@2", "corrupt_blob")]
    assert store.verify("humanoid@3") == ()


@pytest.mark.parametrize("content", [b"", b"short", None], ids=["empty", "short", "gone"])
def test_a_truncated_or_lost_blob_is_refused(store: Store, content: bytes | None) -> None:
    version = store.resolve("humanoid@1")
    path = _blob(store, version.manifest.files["encoder.onnx"].digest)
    path.unlink() if content is None else _overwrite(path, content)
    with pytest.raises(CorruptBlob):
        store.read(version, "encoder.onnx")


@pytest.mark.parametrize("part", ["manifest", "record"])
def test_a_damaged_version_is_reported_and_skipped(
    store: Store, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = store.resolve("humanoid@2")
    _overwrite(
        _blob(store, damaged.digest) if part == "manifest" else _record(store, damaged), b'{"half":'
    )
    with caplog.at_level(logging.WARNING, "skills_store"):
        assert [v.number for v in store.versions("humanoid")] == [1, 3]
    assert "humanoid@2" in caplog.text
    for ref in ("humanoid@2", "humanoid@prod"):
        with pytest.raises(
            CorruptBlob if part == "manifest" else CorruptRecord, match="humanoid@2"
        ):
            store.resolve(ref)
        assert len(store.verify(ref)) == 1
    assert store.resolve("humanoid").number == 3
    assert {f.ref for f in store.verify()} >= {"humanoid@2", "humanoid@prod"}
    assert tiny.publish_tiny(store, seed=9).number == 4


def test_damaged_latest_is_refused_without_falling_back(store: Store) -> None:
    _overwrite(_record(store, store.resolve("humanoid@3")), b"")
    with pytest.raises(CorruptRecord):
        store.resolve("humanoid@latest")


def test_a_swapped_record_is_refused(store: Store) -> None:
    one, two = (_record(store, store.resolve(f"humanoid@{n}")) for n in (1, 2))
    _overwrite(two, one.read_bytes())
    with pytest.raises(CorruptRecord, match="that of humanoid@1"):
        store.resolve("humanoid@2")


def test_rewritten_record_is_reported_by_verify(store: Store) -> None:
    path = _record(store, store.resolve("humanoid@1"))
    _overwrite(path, path.read_bytes().replace(b'"created":"20', b'"created":"19'))
    assert [(f.ref, f.code) for f in store.verify()] == [("humanoid@1", "corrupt_record")]


def test_publishing_the_same_bytes_again_restores_a_blob(store: Store) -> None:
    version = store.resolve("humanoid@1")
    _overwrite(_blob(store, version.manifest.files["policy.onnx"].digest), b"rot")
    tiny.publish_tiny(store, seed=0)
    assert store.read(version, "policy.onnx") == tiny.policy(0)


def test_damaged_alias_is_skipped_and_repaired_by_force(store: Store) -> None:
    store.alias("humanoid", "canary", 3)
    _overwrite(store.root / "skills/humanoid/moves/prod/00000001.json", b"\0\0")
    assert store.aliases("humanoid") == {"canary": 3}
    with pytest.raises(CorruptRecord, match="humanoid@prod"):
        store.resolve("humanoid@prod")
    store.alias("humanoid", "prod", 1, force=True)
    assert store.resolve("humanoid@prod").number == 1
    assert [(m.alias, m.rev, m.previous) for m in store.log("humanoid")][-1] == ("prod", 2, None)


def test_stray_files_are_not_taken_for_versions(store: Store) -> None:
    for name in ("00000004.json.swp", "4.json", "notes.txt"):
        (store.root / "skills/humanoid/v" / name).write_text("x")
    (store.root / "skills/.DS_Store").write_text("x")
    (store.root / "skills/file").write_text("x")
    assert store.names() == ("humanoid",)
    assert len(store.versions("humanoid")) == 3


def test_stray_files_are_not_taken_for_moves(store: Store) -> None:
    store.alias("humanoid", "canary", 3)
    for name in ("00000004.json.swp", "4.json", "notes.txt"):
        (store.root / "skills/humanoid/moves/canary" / name).write_text("x")
    assert store.resolve("humanoid@canary").number == 3
    (store.root / "skills/humanoid/moves/empty").mkdir()
    with pytest.raises(UnknownAlias, match="canary"):
        store.resolve("humanoid@empty")


def _blob(store: Store, digest: str) -> Path:
    return store.root / "blobs/sha256" / digest.removeprefix("sha256:")


def _record(store: Store, version: Version) -> Path:
    return store.root / f"skills/{version.name}/v/{version.number:08d}.json"


def _overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)
