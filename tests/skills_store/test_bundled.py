"""Bundled libraries are read beside any store, and never changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skills_store.__main__ import main
from skills_store.errors import (
    BundledVersion,
    DeletedVersion,
    InvalidArgument,
    NotAStore,
    UnknownSkill,
    UnknownVersion,
    WrongKind,
)
from skills_store.open import open_store
from skills_store.runtime.library import Controller, SkillLibrary
from skills_store.store import BUNDLED, Store
from skills_store.transfer.copy import copy
from skills_store.transfer.formats import export, import_folder
from skills_store.version import Version
from tests import tiny

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bundle(tmp_path: Path) -> Store:
    """humanoid@1 and @2, and reach@1 on the second."""
    store = Store(tmp_path / "bundle")
    tiny.publish_tiny(store)
    tiny.publish_tiny_controller(store, tiny.publish_tiny(store, seed=1))
    return store


@pytest.fixture
def store(tmp_path: Path, bundle: Store) -> Store:
    """A user's store in which nothing was published, beside the bundle."""
    return Store(tmp_path / "store", bundled=bundle.root)


def snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_bundled_versions_read_like_local_ones(store: Store, bundle: Store) -> None:
    assert store.names() == ("humanoid", "reach")
    for ref in ("humanoid", "humanoid@latest", "humanoid@1", bundle.resolve("humanoid@2").pinned):
        assert store.resolve(ref) == bundle.resolve(ref)
    assert [summary.number for summary in store.summaries("humanoid")[0]] == [1, 2]
    assert store.verify("humanoid@2") == ()
    state = np.ones((1, tiny.STATE))
    z = np.ones((1, tiny.LATENT))
    expected = SkillLibrary.open(bundle, "humanoid").act(state, z)
    np.testing.assert_array_equal(SkillLibrary.open(store, "humanoid").act(state, z), expected)
    assert Controller.open(store, "reach").library.version.ref == "humanoid@2"
    assert not store.root.exists()


@pytest.mark.parametrize("swept", [False, True], ids=["deleted", "swept"])
def test_a_version_withdrawn_from_the_bundle_is_deleted_and_not_corrupt(
    store: Store, bundle: Store, swept: bool
) -> None:
    withdrawn = bundle.resolve("humanoid@1")
    bundle.delete(withdrawn.ref, "the second is better")
    if swept:
        bundle.gc(grace=0)
    assert [summary.number for summary in store.summaries("humanoid")[0]] == [2]
    for ref in (withdrawn.ref, withdrawn.pinned):
        with pytest.raises(DeletedVersion, match=r"the second is better; there are: 2"):
            store.resolve(ref)


def test_bundled_versions_do_not_replace_those_of_a_store_that_is_gone(
    tmp_path: Path, bundle: Store
) -> None:
    tiny.publish_tiny(Store(tmp_path / "store"), seed=2)
    store = Store(tmp_path / "store", bundled=bundle.root)
    own = store.resolve("humanoid")
    away = store.root.rename(tmp_path / "away")
    store.root.mkdir()  # as an empty mount point
    with pytest.raises(NotAStore, match=r"its layout.json is gone"):
        store.resolve("humanoid")
    store.root.rmdir()
    away.rename(store.root)
    assert store.resolve("humanoid") == own


def test_user_version_numbers_continue_after_bundled_versions(store: Store, bundle: Store) -> None:
    before = snapshot(bundle.root)
    published = tiny.publish_tiny(store, seed=2)
    assert published.ref == "humanoid@3"
    assert store.resolve("humanoid") == published
    assert [version.number for version in store.versions("humanoid")] == [1, 2, 3]
    assert [store.is_bundled(version) for version in store.versions("humanoid")] == [
        True,
        True,
        False,
    ]
    assert store.verify() == ()
    assert snapshot(bundle.root) == before
    with pytest.raises(UnknownVersion, match="there are: 1-3"):
        store.resolve("humanoid@9")


WRITES: dict[str, Callable[[Store, Version], object]] = {
    "alias": lambda store, version: store.alias("humanoid", "prod", version.number),
    "lease": lambda store, version: store.lease(version.ref, 60),
    "delete": lambda store, version: store.delete(version.ref, "old"),
    "sign": lambda store, version: store.add_signature(version, b"{}"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_bundled_version_is_refused_with_the_remedy(
    store: Store, bundle: Store, write: str
) -> None:
    before = snapshot(bundle.root)
    remedy = f"`skills pull humanoid@2 --from {bundle.root}` copies it into {store.location}"
    with pytest.raises(
        BundledVersion, match="humanoid@2 comes with the project and is read-only"
    ) as refused:
        WRITES[write](store, store.resolve("humanoid@2"))
    assert str(refused.value).endswith(remedy)
    assert snapshot(bundle.root) == before
    assert not store.root.exists()


def test_copied_bundled_version_becomes_local(store: Store, bundle: Store) -> None:
    [copied] = copy("humanoid@2", bundle, store)
    assert copied.new
    assert not store.is_bundled(copied.version)
    assert store.alias("humanoid", "prod", 2).number == 2
    assert store.resolve("humanoid@1").number == 1


def test_a_deleted_copy_of_a_bundled_version_stays_deleted(store: Store, bundle: Store) -> None:
    copy("humanoid@1", bundle, store)
    store.delete("humanoid@1", "it limps")
    with pytest.raises(UnknownVersion, match="humanoid@1 was deleted"):
        store.resolve("humanoid@1")
    assert store.resolve("humanoid").number == 2


def test_publishing_a_controller_copies_its_bundled_library(
    store: Store, bundle: Store, tmp_path: Path
) -> None:
    """The store stays complete if the bundle is hidden, moved or replaced."""
    tiny.publish_tiny_controller(store, store.resolve("humanoid@2"), name="strike")
    alone = Store(store.root)
    assert Controller.open(alone, "strike").library.version == bundle.resolve("humanoid@2")
    assert alone.verify() == ()
    assert alone.gc(grace=0).orphans == ()


def test_a_copy_of_a_controller_brings_its_library_too(store: Store, bundle: Store) -> None:
    assert [(each.version.ref, each.new) for each in copy("reach", bundle, store)] == [
        ("humanoid@2", True),
        ("reach@1", True),
    ]
    assert Store(store.root).verify() == ()


def test_a_push_sends_a_bundled_version(store: Store, tmp_path: Path) -> None:
    target = Store(tmp_path / "target")
    assert [each.version.ref for each in copy("reach", store, target)] == ["humanoid@2", "reach@1"]
    assert target.verify() == ()


def test_local_version_shadows_bundled_version_of_equal_number(
    tmp_path: Path, bundle: Store
) -> None:
    own = tiny.publish_tiny(Store(tmp_path / "store"), seed=2)
    store = Store(tmp_path / "store", bundled=bundle.root)
    assert store.resolve("humanoid") == store.resolve("humanoid@1") == own
    with pytest.raises(UnknownVersion, match=r"there are: 1$"):
        store.resolve("humanoid@2")
    # Another name, whose library is found by its digest.
    controller = Controller.open(store, "reach")
    assert controller.library.version == bundle.resolve("humanoid@2")
    tiny.publish_tiny_controller(store, controller.library.version, name="strike")
    assert Controller.open(Store(store.root), "strike").library.version.ref == "humanoid@2"
    assert store.resolve("humanoid@1") == own


def test_a_bundled_version_is_imported_once(store: Store, tmp_path: Path) -> None:
    """Under the next number, because the bundled version has its own."""
    export(store, "humanoid@1", "onnx", tmp_path / "files")
    imported, new = import_folder(store, tmp_path / "files")
    assert (imported.ref, new) == ("humanoid@3", True)
    export(store, "humanoid@1", "oci", tmp_path / "oci")
    assert import_folder(store, tmp_path / "oci") == (imported, False)


def test_a_name_keeps_its_kind(store: Store) -> None:
    library = store.resolve("humanoid")
    with pytest.raises(WrongKind, match="humanoid@2 is of kind 'skills', not 'controller'; choose"):
        tiny.publish_tiny_controller(store, library, name="humanoid")
    with pytest.raises(WrongKind, match="reach@1 is of kind 'controller', not 'skills"):
        tiny.publish_tiny(store, name="reach")
    assert not store.root.exists()


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets up commands with the real bundle; returns the folder of the user's store."""
    monkeypatch.setenv("REPERTOIRE_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("REPERTOIRE_BUNDLED")
    return tmp_path / "store"


def test_every_command_finds_the_bundled_libraries(commands: Path, capsys: Capture) -> None:
    assert main(["ls"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert "SOURCE" in header.split()
    assert [row.split()[:2] for row in rows if "bundled" in row] == [
        ["heading", "4"],
        ["humanoid", "4"],
        ["humanoid", "1"],
        ["location", "6"],
        ["mobility", "8"],
        ["path", "4"],
        ["reach", "6"],
        ["reach", "1"],
        ["speed", "2"],
        ["stand", "3"],
    ]
    assert main(["show", "humanoid@4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "bundled"
    assert main(["search", "--task", "reach", "--json"]) == 0
    versions = json.loads(capsys.readouterr().out)["versions"]
    assert [(row["ref"], row["source"]) for row in versions] == [
        ("reach@6", "bundled"),
        ("reach@1", "bundled"),
    ]
    assert main(["diff", "humanoid@1", "humanoid@4"]) == 0
    assert main(["export", "humanoid@4", "--onnx", str(commands.parent / "out")]) == 0
    assert not commands.exists()
    assert main(["delete", "humanoid@4", "--why", "old"]) == 2
    err = capsys.readouterr().err
    assert "comes with the project and is read-only" in err
    assert err.count("\n") == 1


def test_named_store_includes_bundle_and_copy_sources_do_not(
    commands: Path, capsys: Capture
) -> None:
    named = str(commands.parent / "named")
    assert main(["--store", named, "show", "humanoid@4"]) == 0
    assert main(["pull", "humanoid@4", "--from", named]) == 2
    assert "named is not a store: nothing was ever published" in capsys.readouterr().err
    assert main(["push", "humanoid@4", "--to", named]) == 0
    assert Store(named).resolve("humanoid").number == 4


@pytest.mark.parametrize("where", [None, ""], ids=["none", "empty"])
def test_default_store_includes_the_bundle(commands: Path, where: str | None) -> None:
    """`store=` of pretrain and hlc is the empty text until it is set."""
    assert SkillLibrary.open(open_store(where), "humanoid@4").version.number == 4


def test_the_bundle_itself_is_a_store_like_any_other(commands: Path) -> None:
    store = open_store(BUNDLED)
    assert not store.is_bundled(store.resolve("humanoid@4"))


def test_bundled_off_hides_the_libraries_and_a_typo_is_refused(
    commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPERTOIRE_BUNDLED", "off")
    with pytest.raises(UnknownSkill, match="there are no skills"):
        open_store().resolve("humanoid")
    monkeypatch.setenv("REPERTOIRE_BUNDLED", "of")
    with pytest.raises(InvalidArgument, match="REPERTOIRE_BUNDLED is 'of'; it can be on or off"):
        open_store()
