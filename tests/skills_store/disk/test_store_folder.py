"""A folder that is not a store is refused: nothing in it is written or swept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.errors import NotAStore
from skills_store.store import Store
from tests import tiny

COMMANDS = (
    ["gc", "--grace", "0"],
    ["gc", "--dry-run"],
    ["verify"],
    ["ls"],
    ["alias", "humanoid", "prod", "1"],
    ["pull", "humanoid@1", "--from", "{source}"],
    ["import", "{source}"],
)


@pytest.fixture
def source(tmp_path: Path) -> Store:
    store = Store(tmp_path / "source")
    tiny.publish_tiny(store)
    return store


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_folder_that_is_no_store_is_refused_and_unchanged(
    tmp_path: Path, source: Store, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    for file in ("src/main.py", "staging/model.onnx", "skills/cooking/recipe.md"):
        (project / file).parent.mkdir(parents=True)
        (project / file).write_text("mine")
        os.utime(project / file, (0, 0))
    before = sorted(project.rglob("*"))
    assert main(["--store", str(project), *(word.format(source=source.root) for word in argv)]) == 2
    err = capsys.readouterr().err
    assert (
        f"skills: {project} is not a store: it holds skills, src, staging and no layout.json" in err
    )
    assert err.count("\n") == 1
    assert sorted(project.rglob("*")) == before


def test_folder_with_foreign_files_added_later_is_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    (store.root / "staging").mkdir(parents=True)
    (store.root / "staging/model.onnx").write_text("mine")
    for write in (lambda: tiny.publish_tiny(store), lambda: store.gc(grace=0)):
        with pytest.raises(NotAStore, match="it holds staging"):
            write()
    assert [path.name for path in store.root.rglob("*")] == ["staging", "model.onnx"]


def test_concurrent_first_publishes_share_one_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other publisher finishes between this one's first and second listing of the folder."""
    store = Store(tmp_path / "store")
    other = Store(tmp_path / "store")
    listed = os.listdir

    def late(folder: Path) -> list[str]:
        monkeypatch.setattr(os, "listdir", listed)
        tiny.publish_tiny(other, seed=1)
        return listed(folder)

    monkeypatch.setattr(os, "listdir", late)
    assert tiny.publish_tiny(store, seed=2).number == 2
    assert store.verify() == ()


@pytest.mark.parametrize("below", ["", "store"])
def test_a_file_is_not_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], below: str
) -> None:
    (tmp_path / "file").write_text("mine")
    for command in (["ls"], ["verify"], ["gc"]):
        assert main(["--store", str(tmp_path / "file" / below), *command]) == 2
        err = capsys.readouterr().err
        assert "is not a store: it is a file, or lies in one" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "begun", ["", "lost+found/", ".keep", "lock/queue", "lock/access", "staging/12-" + "a" * 32]
)
def test_empty_or_half_started_folder_becomes_a_store(tmp_path: Path, begun: str) -> None:
    root = tmp_path / "store"
    (root / begun).parent.mkdir(parents=True, exist_ok=True)
    (root / begun).mkdir(parents=True, exist_ok=True) if begun[-1:] in ("", "/") else (
        root / begun
    ).touch()
    assert Store(root).gc(grace=0).orphans == ()
    assert not (root / "layout.json").exists()  # gc creates no store
    assert tiny.publish_tiny(Store(root)).number == 1
    assert Store(root).verify() == ()


def test_a_store_without_its_marker_is_refused(source: Store) -> None:
    (source.root / "layout.json").unlink()
    with pytest.raises(NotAStore, match=r"it holds blobs, skills and no layout\.json"):
        Store(source.root)


@pytest.mark.parametrize("there", [True, False])
def test_verify_of_an_empty_or_missing_store_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    if there:
        (tmp_path / "typo").mkdir()
    assert main(["--store", str(tmp_path / "typo"), "verify"]) == 2
    assert (
        capsys.readouterr().err
        == f"skills: {tmp_path / 'typo'} is not a store: nothing was ever published there\n"
    )
