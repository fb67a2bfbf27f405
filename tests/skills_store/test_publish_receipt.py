"""The receipt of a run's publication, by its samples and the store that has the version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from skills_store import publish_receipt
from skills_store.manifest import Manifest
from skills_store.store import Store
from tests import tiny
from tests.skills_store.full import files_of_at_most


def test_a_receipt_is_for_its_samples_and_its_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert publish_receipt.find_published(tmp_path, store, 100) is None
    version = publish_receipt.publish(
        tmp_path, store, tiny.skills_manifest(), tiny.skills_files(), 100
    )
    assert publish_receipt.find_published(tmp_path, store, 100) == version
    assert publish_receipt.find_published(tmp_path, store, 200) is None
    assert publish_receipt.find_published(tmp_path, Store(tmp_path / "elsewhere"), 100) is None


class Killed(BaseException):
    """As by SIGKILL: no handler catches it."""


def published_but_killed(self: Store, manifest: Manifest, files: Mapping[str, bytes]) -> None:
    whole_publish(self, manifest, files)
    raise Killed


def killed_and_not_published(self: Store, manifest: Manifest, files: Mapping[str, bytes]) -> None:
    raise Killed


whole_publish = Store.publish


@pytest.mark.parametrize(
    ("killed", "there"), [(published_but_killed, True), (killed_and_not_published, False)]
)
def test_receipt_detects_publication_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Callable[..., None], there: bool
) -> None:
    store = Store(tmp_path / "store")
    made = (tiny.skills_manifest(), tiny.skills_files())
    with monkeypatch.context() as patch:
        patch.setattr(Store, "publish", killed)
        with pytest.raises(Killed):
            publish_receipt.publish(tmp_path, store, *made, 100)
    found = publish_receipt.find_published(tmp_path, store, 100)
    assert found == (store.resolve("humanoid@1") if there else None)
    if found is None:
        found = publish_receipt.publish(tmp_path, store, *made, 100)
    assert publish_receipt.find_published(tmp_path, store, 100) == found
    assert [version.number for version in store.versions("humanoid")] == [1]


def test_publish_is_refused_if_the_receipt_cannot_be_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with (
        files_of_at_most(10),
        pytest.raises(OSError, match=r"published\.json not written: .*; nothing is published"),
    ):
        publish_receipt.publish(tmp_path, store, tiny.skills_manifest(), tiny.skills_files(), 100)
    assert store.names() == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damaged", ["", "[]", '{"version": "humanoid@1"}'])
def test_a_damaged_receipt_is_named(tmp_path: Path, damaged: str) -> None:
    (tmp_path / publish_receipt.FILE).write_text(damaged)
    with pytest.raises(ValueError, match=r"published\.json is no receipt"):
        publish_receipt.find_published(tmp_path, Store(tmp_path / "store"), 100)
