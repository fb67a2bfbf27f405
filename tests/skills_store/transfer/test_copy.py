"""A copy is the same version in another store: same number, digest and bytes, or nothing at all."""

from __future__ import annotations

import io
import json
import multiprocessing
from functools import partial
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.commands.meter import Meter
from skills_store.disk import records, store_folder
from skills_store.disk.blobs import Blobs, describe
from skills_store.disk.durable import create
from skills_store.errors import (
    CorruptBlob,
    DeletedVersion,
    GateRefusal,
    NumberConflict,
    UnknownVersion,
)
from skills_store.store import Store
from skills_store.transfer.copy import copy
from tests import tiny


@pytest.fixture
def source(tmp_path: Path) -> Store:
    store = Store(tmp_path / "source")
    for seed in range(3):
        tiny.publish_tiny(store, seed=seed)
    return store


@pytest.fixture
def target(tmp_path: Path) -> Store:
    return Store(tmp_path / "target")


def test_a_copy_is_the_same_version(source: Store, target: Store) -> None:
    source.alias("humanoid", "prod", 2)
    (copied,) = copy("humanoid@prod", source, target)
    there = source.resolve("humanoid@2")
    here = target.resolve("humanoid@2")
    assert copied.new
    assert copied.version == here == there  # name, number, digest and date
    assert target.manifest_bytes(here) == source.manifest_bytes(there)
    assert {file: target.read(here, file) for file in here.manifest.files} == tiny.skills_files(1)
    assert target.aliases("humanoid") == {}  # aliases are not copied
    assert target.verify() == ()


def test_versions_are_copied_one_by_one_in_any_order(source: Store, target: Store) -> None:
    for ref in ("humanoid@3", "humanoid@1", "humanoid@2"):
        copy(ref, source, target)
        assert target.verify() == ()
    assert [v.digest for v in target.versions("humanoid")] == [
        v.digest for v in source.versions("humanoid")
    ]
    assert tiny.publish_tiny(target, seed=9).number == 4
    assert target.verify() == ()


def test_repeated_copy_changes_nothing(source: Store, target: Store) -> None:
    copy("humanoid@2", source, target)
    before = _files(target.root)
    (again,) = copy("humanoid@2", source, target)
    assert (again.new, again.version.ref) == (False, "humanoid@2")
    assert not copy("humanoid@2", source, source)[0].new  # nor does a copy to itself
    assert _files(target.root) == before


def test_a_taken_number_is_refused_with_both_digests(source: Store, target: Store) -> None:
    mine = tiny.publish_tiny(target, seed=7)
    before = _files(target.root)
    with pytest.raises(NumberConflict) as refused:
        copy("humanoid@1", source, target)
    for part in (
        mine.digest,
        source.resolve("humanoid@1").digest,
        str(source.root),
        str(target.root),
        "humanoid@1",
    ):
        assert part in str(refused.value)
    assert _files(target.root) == before


def test_copy_does_not_restore_a_version_deleted_in_the_target(
    source: Store, target: Store
) -> None:
    copy("humanoid@1", source, target)
    target.delete("humanoid@1", "it limps")
    before = _files(target.root)
    with pytest.raises(DeletedVersion, match=r"humanoid@1 was deleted .*: it limps"):
        copy("humanoid@1", source, target)
    assert _files(target.root) == before


def test_copy_of_a_controller_brings_its_parent(source: Store, target: Store) -> None:
    tiny.publish_tiny_controller(source, source.resolve("humanoid@2"))
    copied = copy("reach", source, target)
    assert [(each.version.ref, each.new) for each in copied] == [
        ("humanoid@2", True),
        ("reach@1", True),
    ]
    assert target.parent(target.resolve("reach").manifest).ref == "humanoid@2"
    assert target.verify() == ()


def test_copy_reuses_an_identical_parent_of_another_number(source: Store, target: Store) -> None:
    tiny.publish_tiny_controller(source, source.resolve("humanoid@2"))
    tiny.publish_tiny(target, seed=1)  # the bytes of humanoid@2, as number 1
    copied = copy("reach", source, target)
    assert [(each.version.ref, each.new) for each in copied] == [
        ("humanoid@1", False),
        ("reach@1", True),
    ]
    assert len(target.versions("humanoid")) == 1


def test_refused_copy_of_a_controller_brings_no_parent(
    source: Store, target: Store, tmp_path: Path
) -> None:
    tiny.publish_tiny_controller(source, source.resolve("humanoid@2"))
    elsewhere = Store(tmp_path / "elsewhere")
    tiny.publish_tiny_controller(elsewhere, tiny.publish_tiny(elsewhere, name="other"))
    copy("reach", elsewhere, target)
    with pytest.raises(NumberConflict, match="reach@1"):
        copy("reach", source, target)
    assert target.names() == ("other", "reach")


def test_copy_of_a_damaged_version_is_refused(source: Store, target: Store) -> None:
    version = source.resolve("humanoid@1")
    path = (
        source.root
        / "blobs/sha256"
        / version.manifest.files["style.onnx"].digest.removeprefix("sha256:")
    )
    path.chmod(0o644)
    path.write_bytes(tiny.style(5))
    with pytest.raises(CorruptBlob, match=r"style\.onnx of humanoid@1"):
        copy("humanoid@1", source, target)
    assert not target.root.exists()


def test_copy_runs_the_gate_on_versions_of_an_ungated_store(tmp_path: Path, target: Store) -> None:
    """Matching digests do not make the files admissible."""
    ungated = Store(tmp_path / "ungated")
    tiny.publish_tiny(ungated)
    manifest = json.loads(ungated.manifest_bytes(ungated.resolve("humanoid")))
    unknown = tiny.policy().replace(b"Tanh", b"None")
    manifest["files"]["policy.onnx"] = describe(unknown).model_dump()
    data = json.dumps(manifest).encode()
    blobs = Blobs(ungated.root / "blobs/sha256", ungated.root / "staging")
    for content in (unknown, data):
        blobs.write(content)
    records.commit(
        ungated.root / "skills/humanoid/v",
        partial(create, ungated.root / "staging"),
        "humanoid",
        describe(data),
    )
    assert ungated.verify() == ()
    with pytest.raises(GateRefusal, match="operator None is not on the allow-list"):
        copy("humanoid@2", ungated, target)
    assert not target.root.exists()


def test_interrupted_copy_is_all_or_nothing(source: Store, tmp_path: Path) -> None:
    tiny.publish_tiny_controller(source, source.resolve("humanoid@2"))
    for stop in range(1, 20):
        target = Store(tmp_path / str(stop))
        calls = iter(range(1, stop + 1))

        def stopping(*_: object, calls=calls, stop=stop) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt

        try:
            copy("reach", source, target, stopping)
            break
        except KeyboardInterrupt:
            assert set(target.names()) <= {"humanoid"}  # at most the parent, and whole
            if store_folder.is_store(target.root):
                assert target.verify() == ()
        assert copy("reach", source, target)[-1].new
        assert target.verify() == ()
    assert stop == 2 * 4 + 1  # four files, each read and each written


def test_concurrent_copies_make_one_version(source: Store, target: Store) -> None:
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=copy, args=("humanoid@2", source, target)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert target.versions("humanoid") == (source.resolve("humanoid@2"),)
    assert target.verify() == ()


def test_progress_counts_every_byte_twice(source: Store, target: Store) -> None:
    seen: list[tuple[str, int, int]] = []
    copy("humanoid@1", source, target, lambda *step: seen.append(step))
    size = sum(map(len, tiny.skills_files(0).values()))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})
    assert {total for *_, total in seen} == {2 * size}
    assert seen[-1] == ("wrote style.onnx", 2 * size, 2 * size)


def test_progress_is_shown_on_terminals_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, expected in (
        (Terminal(), "\r 50%  1.0 of 2.0 MB  read policy.onnx"),
        (io.StringIO(), ""),
    ):
        meter = Meter(stream)
        meter("read policy.onnx", 10**6, 2 * 10**6)
        assert stream.getvalue() == expected
        meter.close()
        assert stream.getvalue().split("\r")[-1].strip() == ""


def test_push_and_pull_commands(
    source: Store, target: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", str(source.root), "push", "humanoid@2", "--to", str(target.root)]) == 0
    out = capsys.readouterr().out
    assert "humanoid@2  sha256:" in out
    assert f"copied to {target.root}" in out
    assert (
        main(["--store", str(target.root), "pull", "humanoid@2", "--from", str(source.root)]) == 0
    )
    assert f"is in {target.root} already" in capsys.readouterr().out
    assert (
        main(
            ["--store", str(target.root), "pull", "humanoid", "--from", str(source.root), "--json"]
        )
        == 0
    )
    (copied,) = json.loads(capsys.readouterr().out)
    assert copied == {
        "ref": "humanoid@3",
        "digest": source.resolve("humanoid@3").digest,
        "new": True,
    }
    assert (
        main(["--store", str(target.root), "pull", "humanoid@9", "--from", str(source.root)]) == 2
    )
    assert "there are: 1-3" in capsys.readouterr().err
    nowhere = target.root / "nowhere"
    assert main(["--store", str(target.root), "pull", "humanoid", "--from", str(nowhere)]) == 2
    assert f"{nowhere} is not a store: nothing was ever published" in capsys.readouterr().err


def test_copy_of_a_version_missing_in_the_source_is_refused(source: Store, target: Store) -> None:
    with pytest.raises(UnknownVersion, match="there are: 1-3"):
        copy("humanoid@4", source, target)


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
