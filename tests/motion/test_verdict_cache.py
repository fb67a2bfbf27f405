"""The cache of verdicts between checks."""

from __future__ import annotations

import json
import math

import pytest

from pretrain.motion import check as checking
from pretrain.motion import verdict_cache
from pretrain.motion.__main__ import INTERRUPTED, main
from pretrain.motion.check import check
from pretrain.motion.importers import npz
from pretrain.motion.verdict import judge
from skills_store import places


@pytest.fixture
def takes(tmp_path, stroll, still):
    """A folder of four clips."""
    folder = tmp_path / "takes"
    folder.mkdir()
    for i, clip in enumerate((stroll, still, stroll, still)):
        (folder / f"{i}.npz").write_bytes(npz.write(clip))
    return folder


@pytest.fixture
def judged(monkeypatch):
    """The names of clips in the order in which they were judged."""
    names = []

    def count(clip):
        names.append(clip.name)
        return judge(clip)

    monkeypatch.setattr(checking, "judge", count)
    return names


def test_second_check_uses_cached_verdicts(takes, tmp_path, judged):
    first = list(check([str(takes)], "humanoid", 1, tmp_path / "kept"))
    assert judged == ["0", "1", "2", "3"]
    judged.clear()
    again = list(check([str(takes)], "humanoid", 1, tmp_path / "kept"))
    assert judged == []
    assert repr(again) == repr(first)  # a fall of NaN equals no other
    assert again[0].measures
    assert math.isnan(again[0].measures.fall)


def test_changed_file_invalidates_its_cached_verdict(takes, tmp_path, judged, still):
    list(check([str(takes)], "humanoid", 1, tmp_path / "kept"))
    judged.clear()
    (takes / "2.npz").write_bytes(npz.write(still.mirrored()))
    list(check([str(takes)], "humanoid", 1, tmp_path / "kept"))
    assert judged == ["2"]


@pytest.mark.parametrize("change", ["name", "code"])
def test_renamed_file_or_changed_code_invalidates_the_cache(
    takes, tmp_path, judged, monkeypatch, change
):
    list(check([str(takes / "1.npz")], "humanoid", 1, tmp_path / "kept"))
    judged.clear()
    if change == "name":
        (takes / "1.npz").rename(takes / "other.npz")
    else:
        monkeypatch.setattr(verdict_cache, "digest_sources", lambda: "another")
    file = takes / ("other.npz" if change == "name" else "1.npz")
    list(check([str(file)], "humanoid", 1, tmp_path / "kept"))
    assert len(judged) == 1


def test_damaged_cached_verdict_is_recomputed(takes, tmp_path, judged):
    kept = tmp_path / "kept"
    (first,) = check([str(takes / "0.npz")], "humanoid", 1, kept)
    (file,) = kept.rglob("*.json")
    file.write_text(json.dumps({"name": "0"}))
    judged.clear()
    (again,) = check([str(takes / "0.npz")], "humanoid", 1, kept)
    assert judged == ["0"]
    assert repr(again) == repr(first)


def test_interrupted_check_resumes_from_the_cache(takes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(places, "verdicts", lambda: tmp_path / "kept")
    names = []

    def stop(clip):
        if clip.name == "2" and "2" not in names:
            names.append("2")
            raise KeyboardInterrupt
        names.append(clip.name)
        return judge(clip)

    monkeypatch.setattr(checking, "judge", stop)
    arguments = ["check", str(takes), "--workers", "1"]
    assert main(arguments) == INTERRUPTED
    assert "stopped after 2 clips; the same command goes on" in capsys.readouterr().err
    names[:] = ["2"]
    assert main(arguments) == 0
    assert names[1:] == ["2", "3"]


def test_no_keep_neither_reads_nor_writes_the_cache(takes, tmp_path, judged, monkeypatch):
    monkeypatch.setattr(places, "verdicts", lambda: tmp_path / "kept")
    for _ in range(2):
        assert main(["check", str(takes / "0.npz"), "--no-keep"]) == 0
    assert judged == ["0", "0"]
    assert not (tmp_path / "kept").exists()


def test_unwritable_cache_error_suggests_no_keep(takes, tmp_path, monkeypatch, capsys):
    (tmp_path / "kept").write_text("a file where a folder is needed")
    monkeypatch.setattr(places, "verdicts", lambda: tmp_path / "kept")
    assert main(["check", str(takes / "0.npz")]) == 2
    assert "--no-keep" in capsys.readouterr().err


def test_worker_processes_use_verdicts_of_a_single_process(takes, tmp_path, stroll):
    for i in range(4, 9):
        (takes / f"{i}.npz").write_bytes(npz.write(stroll))
    one = list(check([str(takes)], "humanoid", 1, tmp_path / "kept"))
    files = sorted((tmp_path / "kept").rglob("*.json"))
    stamps = [file.stat().st_mtime_ns for file in files]
    two = list(check([str(takes)], "humanoid", 2, tmp_path / "kept"))
    assert repr(two) == repr(one)
    assert [file.stat().st_mtime_ns for file in files] == stamps
