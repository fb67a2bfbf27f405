"""Stores of other layouts: later ones are read-only or refused, earlier ones are refused."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.disk import layout
from skills_store.disk.blobs import describe
from skills_store.errors import StoreError, UnsupportedLayout, UnsupportedSchema
from skills_store.store import BUNDLED, Store
from tests import tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 1)
    return store


def relabel(store: Store, **values: int) -> None:
    marker = store.root / "layout.json"
    marker.chmod(0o644)
    marker.write_text(json.dumps(values))


def snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_later_layout_is_read_and_not_written(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    relabel(store, layout=4)
    before = snapshot(store.root)
    with caplog.at_level(logging.WARNING, "skills_store"):
        later = Store(store.root)
    assert "is of layout 4, this program of 3: read-only here" in caplog.text
    assert later.read(later.resolve("humanoid@prod"), "policy.onnx") == tiny.policy(0)
    assert later.verify() == ()
    for write in (
        lambda: tiny.publish_tiny(later),
        lambda: later.alias("humanoid", "prod", 2),
        lambda: later.rollback("humanoid", "prod"),
        lambda: later.delete("humanoid@2", "old"),
        lambda: later.lease("humanoid", 60),
        later.gc,
    ):
        with pytest.raises(
            UnsupportedLayout, match="layout is 4; this program writes 3 and only reads it"
        ):
            write()
    assert snapshot(store.root) == before


def test_open_store_whose_layout_becomes_later_is_not_written(store: Store) -> None:
    relabel(store, layout=4)
    with pytest.raises(UnsupportedLayout):
        tiny.publish_tiny(store)


def test_layout_needing_a_newer_reader_is_refused(store: Store) -> None:
    relabel(store, layout=9, reader=8)
    with pytest.raises(
        UnsupportedLayout, match="its layout 9 is read by programs of layout 8; this one reads 3"
    ):
        Store(store.root)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"layout":"one"}', '{"layout":0}', "\0"])
def test_invalid_layout_marker_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "layout.json").write_text(content)
    with pytest.raises(UnsupportedLayout, match=r"layout\.json is"):
        Store(tmp_path)


def test_later_manifest_schema_is_refused_and_others_resolve(store: Store) -> None:
    latest = store.resolve("humanoid@2")
    plain = latest.manifest.model_dump(mode="json") | {"schema_version": 4, "mood": "swift"}
    data = json.dumps(plain).encode()
    record = store.root / "skills/humanoid/v/00000002.json"
    record.chmod(0o644)
    record.write_text(
        json.dumps(json.loads(record.read_bytes()) | {"manifest": describe(data).model_dump()}),
    )
    (store.root / "blobs/sha256" / describe(data).digest.removeprefix("sha256:")).write_bytes(data)
    with pytest.raises(
        UnsupportedSchema, match="its manifest is of schema 4; this program reads 3"
    ):
        store.resolve("humanoid@2")
    assert store.resolve("humanoid@1").number == 1
    with pytest.raises(StoreError, match="of schema 4"):
        store.gc(grace=0)  # its references are unknown


def test_command_refuses_to_write_a_later_layout(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    relabel(store, layout=4)
    assert main(["--store", str(store.root), "alias", "humanoid", "prod", "2"]) == 2
    error = capsys.readouterr().err
    assert "only reads it" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("earlier", [1, 2])
def test_an_earlier_layout_is_refused_and_left_as_it_is(store: Store, earlier: int) -> None:
    relabel(store, layout=earlier)
    before = snapshot(store.root)
    with pytest.raises(
        UnsupportedLayout, match=f"its layout is {earlier}, of an earlier program; this one reads 3"
    ):
        Store(store.root)
    assert snapshot(store.root) == before


def test_the_bundled_store_is_of_this_layout() -> None:
    assert (BUNDLED / "layout.json").read_bytes() == layout.OURS


def test_invalid_marker_is_quoted_as_text(tmp_path: Path) -> None:
    (tmp_path / "layout.json").write_bytes(b'{"\xff')
    with pytest.raises(UnsupportedLayout) as refused:
        Store(tmp_path)
    assert r"""layout.json is '{"\\xff', not like {"layout":3""" in str(refused.value)
