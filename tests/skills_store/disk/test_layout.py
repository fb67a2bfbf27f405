"""A store of a later program is read as far as it can be, and never written; what may be misread is refused."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.disk.blobs import describe
from skills_store.errors import StoreError, UnsupportedLayout, UnsupportedSchema
from skills_store.store import Store
from tests import tiny


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    for seed in range(2):
        tiny.publish_tiny(store, seed=seed)
    store.alias("humanoid", "prod", 1)
    return store


def relabel(store: Store, **layout: int) -> None:
    marker = store.root / "layout.json"
    marker.chmod(0o644)
    marker.write_text(json.dumps(layout))


def snapshot(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_later_layout_is_read_and_not_written(store: Store, caplog: pytest.LogCaptureFixture) -> None:
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
        with pytest.raises(UnsupportedLayout, match="layout is 4; this program knows 3 and only reads it"):
            write()
    assert snapshot(store.root) == before


def test_a_store_that_becomes_later_meanwhile_is_written_no_more(store: Store) -> None:
    relabel(store, layout=4)
    with pytest.raises(UnsupportedLayout):
        tiny.publish_tiny(store)


def test_a_layout_that_would_be_misread_says_so_and_is_refused(store: Store) -> None:
    relabel(store, layout=9, reader=8)
    with pytest.raises(UnsupportedLayout, match="its layout 9 is read by programs of layout 8; this one knows 3"):
        Store(store.root)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"layout":"one"}', '{"layout":0}', "\0"])
def test_a_marker_that_says_nothing_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "layout.json").write_text(content)
    with pytest.raises(UnsupportedLayout, match=r"layout\.json is"):
        Store(tmp_path)


def test_a_manifest_of_a_later_schema_names_it_and_hides_no_other(store: Store) -> None:
    latest = store.resolve("humanoid@2")
    plain = latest.manifest.model_dump(mode="json") | {"schema_version": 4, "mood": "swift"}
    data = json.dumps(plain).encode()
    record = store.root / "skills/humanoid/v/00000002.json"
    record.chmod(0o644)
    record.write_text(
        json.dumps(json.loads(record.read_bytes()) | {"manifest": describe(data).model_dump()}),
    )
    (store.root / "blobs/sha256" / describe(data).digest.removeprefix("sha256:")).write_bytes(data)
    with pytest.raises(UnsupportedSchema, match="its manifest is of schema 4; this program knows 3"):
        store.resolve("humanoid@2")
    assert store.resolve("humanoid@1").number == 1
    with pytest.raises(StoreError, match="of schema 4"):
        store.gc(grace=0)  # it may refer to anything


def test_the_command_line_says_it_in_one_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    relabel(store, layout=4)
    assert main(["--store", str(store.root), "alias", "humanoid", "prod", "2"]) == 2
    assert "only reads it" in capsys.readouterr().err


def test_a_store_of_layout_1_keeps_its_aliases_and_their_past(store: Store) -> None:
    """It had one file for each alias, and one log of all: here prod went 1, 2 and canary 1, whose line a crash tore."""
    said = [("prod", 1, None, 1), ("prod", 2, 1, 2), ("canary", 1, None, 1)]
    digests = {number: store.resolve(f"humanoid@{number}").digest for number in (1, 2)}
    lines = [
        json.dumps(
            {"alias": alias, "number": number, "previous": previous, "rev": rev, "digest": digests[number]}
            | {"at": "2026-01-01T00:00:00Z", "by": "x"}
        )
        for alias, number, previous, rev in said
    ]
    skill = store.root / "skills/humanoid"
    shutil.rmtree(skill / "moves")
    (skill / "alias").mkdir()
    (skill / "alias/prod.json").write_text(lines[1])
    (skill / "alias/canary.json").write_text(lines[2])
    (skill / "log.jsonl").write_text(f"{lines[0]}\n{lines[1]}\n{lines[2][:30]}")
    relabel(store, layout=1)
    before, earlier = snapshot(store.root), Store(store.root)
    assert earlier.aliases("humanoid") == {"canary": 1, "prod": 2}
    assert [(m.alias, m.rev) for m in earlier.log("humanoid")] == [("canary", 1), ("prod", 1), ("prod", 2)]
    assert snapshot(store.root) == before
    assert earlier.rollback("humanoid", "prod").number == 1
    assert [(m.rev, m.previous, m.undoes) for m in earlier.log("humanoid") if m.alias == "prod"][-1] == (3, 2, 2)
    earlier.alias("humanoid", "canary", 2)
    assert earlier.aliases("humanoid") == {"canary": 2, "prod": 1}
    after, marker = snapshot(store.root), store.root / "layout.json"
    assert all(after[path] == data for path, data in before.items() if path != marker)
    assert json.loads(after[marker]) == {"layout": 3, "reader": 3}  # a program of 1 would not see these moves
