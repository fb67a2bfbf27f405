"""A key pair as two files: both are written completely or neither; existing files are never
overwritten.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from skills_store.disk.durable import confirm, sync_dir, write_all
from skills_store.errors import FailedWrite


def create_pair(path: Path, private: bytes, public: bytes) -> None:
    """Write `path`, for its owner only, and `path`.pub. Raises FailedWrite if one exists or the
    disk refuses.
    """
    if not path.name:
        raise FailedWrite("no key is made", f"{path} is a folder; name a file in it")
    pub = path.with_name(f"{path.name}.pub")
    try:
        with (
            _write_beside(path, private, 0o600) as private_file,
            _write_beside(pub, public, 0o644) as public_file,
        ):
            os.link(public_file, pub)  # unlike a rename, it replaces no file
            try:
                os.link(private_file, path)
            except BaseException:
                pub.unlink()
                raise
        with confirm(f"{path} and {pub} are there"):
            sync_dir(path.parent)
    except FileExistsError as error:
        raise FailedWrite(
            "no key is made", f"{error.filename2} is there already; a key is never overwritten"
        ) from error
    except OSError as error:
        raise FailedWrite(
            "no key is made",
            f"{path}: {error.strerror or error}; nothing of it is left, so run it again",
        ) from error


@contextlib.contextmanager
def _write_beside(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A synced temporary file in the same folder, removed on exit."""
    temp = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield temp
    finally:
        with contextlib.suppress(OSError):
            temp.unlink()
