"""The default clips are fetched once and completely, also by concurrent processes."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pretrain.motion import fetch
from pretrain.motion.__main__ import main
from skills_store import places


def test_concurrent_first_fetches_leave_one_complete_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is done while the first is still unpacking."""

    def unpacked(_: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "clip.txt").write_text("whole")
        if not fetch_again:
            return
        fetch_again.pop()
        fetch.fetched(tmp_path)

    fetch_again = [True]
    monkeypatch.setattr(fetch, "_download", lambda folder: folder)
    monkeypatch.setattr(fetch, "_unpack", unpacked)
    monkeypatch.setattr(fetch, "_check", lambda folder: None)
    folder = fetch.fetched(tmp_path)
    assert [file.read_text() for file in folder.iterdir()] == ["whole"]
    assert [entry.name for entry in tmp_path.iterdir()] == [
        folder.name
    ]  # nothing temporary is left


def test_placing_a_missing_folder_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        fetch._place(tmp_path / "nothing", tmp_path / "folder")


def test_clips_with_other_contents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "humanoid3d_walk.txt").write_text("another walk")
    with pytest.raises(OSError, match="not used"):
        fetch._check(tmp_path)


def test_failed_fetch_is_a_one_line_error_with_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(command: list[str], **_: object) -> CompletedProcess[str]:
        return CompletedProcess(command, 1, stderr="ERROR: no route to the index\n")

    monkeypatch.setattr(fetch.subprocess, "run", fail)
    monkeypatch.setattr(places, "clips", lambda: tmp_path)
    assert main(["check", "locomotion"]) == 2
    announced, error = capsys.readouterr().err.splitlines()
    assert announced.startswith("fetching")
    assert error.startswith(f"could not fetch {fetch.WHEEL}: ERROR: no route to the index.")
