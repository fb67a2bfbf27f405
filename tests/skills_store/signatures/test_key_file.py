"""Writing a key pair: both files or neither, private permissions, no overwriting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skills_store.errors import FailedWrite
from skills_store.signatures.key_file import create_pair
from tests.skills_store.full import files_of_at_most

PRIVATE = b"k" * 60
PUBLIC = b"p" * 100


@pytest.mark.parametrize("room", [0, 10, 80])
def test_full_disk_leaves_no_key_file_and_a_retry_succeeds(tmp_path: Path, room: int) -> None:
    with (
        files_of_at_most(room),
        pytest.raises(FailedWrite, match=f"no key is made: {tmp_path / 'key'}: File too large"),
    ):
        create_pair(tmp_path / "key", PRIVATE, PUBLIC)
    assert list(tmp_path.iterdir()) == []
    create_pair(tmp_path / "key", PRIVATE, PUBLIC)
    assert ((tmp_path / "key").read_bytes(), (tmp_path / "key.pub").read_bytes()) == (
        PRIVATE,
        PUBLIC,
    )
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.pub"]


def test_private_key_is_0600_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_pair(tmp_path / "key", PRIVATE, PUBLIC)
    finally:
        os.umask(before)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("folder", ["/", "."])
def test_folder_as_a_key_file_is_refused(folder: str) -> None:
    with pytest.raises(FailedWrite, match="is a folder; name a file in it"):
        create_pair(Path(folder), PRIVATE, PUBLIC)


@pytest.mark.parametrize("taken", ["key", "key.pub"])
def test_existing_key_file_is_not_overwritten(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_bytes(b"mine")
    with pytest.raises(FailedWrite, match=f"{tmp_path / taken} is there already"):
        create_pair(tmp_path / "key", PRIVATE, PUBLIC)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(taken, b"mine")]
