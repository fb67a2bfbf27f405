"""`verify` reports lost and rewritten records, and gc sweeps nothing that they may need."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skills_store.__main__ import main
from skills_store.errors import UnsafeSweep
from skills_store.store import Store
from tests import tiny
from tests.skills_store.contents import assert_clean, blobs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three versions; prod moved from 1 to 2 to 3, which is leased and signed; 2 is deleted."""
    store = Store(tmp_path / "store")
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    for number in (1, 2, 3):
        store.alias("humanoid", "prod", number)
    store.delete("humanoid@2", "it limps")
    store.lease("humanoid@3", 3600)
    store.signatures("humanoid").add(store.resolve("humanoid@3").digest, b"envelope")
    return store


def corrupt(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"rot")


def edit(**fields: Any) -> Callable[[Path], None]:
    def edited(path: Path) -> None:
        path.chmod(0o644)
        path.write_text(json.dumps(json.loads(path.read_bytes()) | fields))

    return edited


DIGEST = f"sha256:{'0' * 64}"
V = "skills/humanoid/v"
MOVES = "skills/humanoid/moves/prod"

# name: (file, damage, start of the reported ref, whether gc refuses to sweep)
DAMAGE: dict[str, tuple[str, Callable[[Path], None], str, bool]] = {
    "the last record lost": (f"{V}/00000003.json", Path.unlink, "humanoid@3", True),
    "the first record lost": (f"{V}/00000001.json", Path.unlink, "humanoid@1", True),
    "a record under another name": (f"{V}/00000003.json", edit(name="other"), "humanoid@3", True),
    "a record under another number": (f"{V}/00000003.json", edit(number=4), "humanoid@3", True),
    "a record of another manifest": (
        f"{V}/00000003.json",
        edit(manifest={"digest": DIGEST, "size": 1}),
        "humanoid@3",
        True,
    ),
    "a deleted record lost": (f"{V}/00000002.json", Path.unlink, "humanoid@2", True),
    "a tombstone of something else": (
        f"{V}/00000002.deleted.json",
        edit(digest=DIGEST),
        "humanoid@2",
        False,
    ),
    "the first move lost": (f"{MOVES}/00000001.json", Path.unlink, "humanoid@prod", False),
    "a move between lost": (f"{MOVES}/00000002.json", Path.unlink, "humanoid@prod", False),
    "the last move damaged": (f"{MOVES}/00000003.json", corrupt, "humanoid@prod", True),
    "an earlier move damaged": (f"{MOVES}/00000002.json", corrupt, "humanoid@prod", False),
    "a move to what never was": (f"{MOVES}/00000003.json", edit(number=9), "humanoid@9", True),
    "a move to other bytes": (f"{MOVES}/00000003.json", edit(digest=DIGEST), "humanoid@3", True),
    "a lease damaged": ("leases/*.json", corrupt, "lease ", True),
    "a lease of other bytes": ("leases/*.json", edit(digest=DIGEST), "lease ", False),
    "a signature damaged": ("skills/humanoid/signatures/*.json", corrupt, "signature ", False),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_reports_damage_and_gc_keeps_needed_blobs(
    store: Store, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, apply_damage, ref, blocks_gc = DAMAGE[damage]
    [path] = store.root.glob(file)
    assert store.verify() == ()
    before = blobs(store)
    content = path.read_bytes()
    apply_damage(path)
    faults = store.verify()
    assert any(fault.ref.startswith(ref) for fault in faults)
    assert len(set(faults)) == len(faults)
    assert main(["--store", str(store.root), "verify"]) == 1
    if blocks_gc:
        for dry_run in (True, False):
            with pytest.raises(UnsafeSweep):
                store.gc(grace=0 if "deleted" not in damage else 3600, dry_run=dry_run)
        assert blobs(store) == before
    else:
        store.gc(grace=0)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    assert_clean(store)


def test_lost_only_record_is_reported_and_blocks_gc(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    tiny.publish_tiny(store)
    store.alias("humanoid", "prod", 1)
    before = blobs(store)
    (store.root / "skills/humanoid/v/00000001.json").unlink()
    assert "humanoid@1" in {fault.ref for fault in store.verify()}
    with pytest.raises(UnsafeSweep, match="humanoid@1"):
        store.gc(grace=0)
    assert blobs(store) == before


def test_alias_to_a_deleted_version_blocks_gc(store: Store) -> None:
    before = blobs(store)
    (store.root / "skills/humanoid/v/00000003.deleted.json").write_text(
        (store.root / "skills/humanoid/v/00000002.deleted.json")
        .read_text()
        .replace('"number":2', '"number":3')
    )
    with pytest.raises(UnsafeSweep, match="humanoid@prod points to humanoid@3, which is deleted"):
        store.gc(grace=0)
    assert blobs(store) == before
    assert "humanoid@prod" in {fault.ref for fault in store.verify()}


def test_repaired_alias_allows_gc_and_verify_still_reports_it(
    store: Store,
) -> None:
    corrupt(store.root / f"{MOVES}/00000003.json")
    store.alias("humanoid", "prod", 3, "from the minutes", force=True)
    assert [fault.ref for fault in store.verify()] == ["humanoid@prod"]
    assert len(store.gc(grace=0).orphans) == 4  # the files and the manifest of humanoid@2


def test_partial_copy_verifies_without_faults(store: Store, tmp_path: Path) -> None:
    assert (
        main(["--store", str(tmp_path / "copy"), "pull", "humanoid@3", "--from", str(store.root)])
        == 0
    )
    copy = Store(tmp_path / "copy")
    copy.alias("humanoid", "prod", 3)
    assert_clean(copy)


def test_missing_parent_library_is_reported_and_blocks_gc(tmp_path: Path) -> None:
    store = Store(tmp_path)
    library = tiny.publish_tiny(store)
    tiny.publish_tiny_controller(store, library)
    (tmp_path / V / "00000001.json").unlink()
    before = blobs(store)
    (found,) = [fault for fault in store.verify() if fault.ref == "reach@1"]
    assert library.digest in found.message
    with pytest.raises(UnsafeSweep, match="is not there"):
        store.gc(grace=0)
    assert blobs(store) == before


def test_number_referenced_by_an_alias_is_not_reused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 3)
    (tmp_path / V / "00000003.json").unlink()
    assert tiny.publish_tiny(store, seed=9).number == 4


def test_number_of_a_deleted_version_whose_record_is_lost_is_not_reused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    store.delete("humanoid@3", "a fall")
    (tmp_path / V / "00000003.json").unlink()
    assert tiny.publish_tiny(store, seed=9).number == 4
