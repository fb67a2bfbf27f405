"""Writes that survive a crash and a power cut: temp, fsync, then one atomic step. Independent
of skills.

POSIX only, on a local file system: link(2) and flock(2) are not to be trusted over NFS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from skills_store.errors import UnconfirmedWrite

# Creates a file whole and durably, or raises FileExistsError. The text is what UnconfirmedWrite
# reports as done.
Create = Callable[[Path, bytes, str], None]


def make_dirs(path: Path) -> None:
    """mkdir -p in which every new entry is synced to its parent."""
    if path.is_dir():
        return
    make_dirs(path.parent)
    with contextlib.suppress(FileExistsError):  # another publisher was first
        os.mkdir(path)
    sync_dir(path.parent)


def sync_dir(path: Path) -> None:
    """A rename or link is atomic at once, but durable only when its directory is synced."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def temporary_file(staging: Path, data: bytes) -> Iterator[Path]:
    """A synced, read-only file on the store's own file system, removed on exit unless it was
    renamed.

    If it cannot be removed, gc sweeps it; the write does not depend on that.
    """
    path = staging / f"{os.getpid()}-{uuid.uuid4().hex}"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def create(staging: Path, path: Path, data: bytes, done: str) -> None:
    """A Create, but with `staging`. Before the link nothing is visible, after it the whole file."""
    make_dirs(staging)
    make_dirs(path.parent)
    with temporary_file(staging, data) as temp:
        os.link(temp, path)
    with confirm(done):
        sync_dir(path.parent)


@contextlib.contextmanager
def confirm(effect: str) -> Iterator[None]:
    """Wraps the steps after a commit point: their failure must not read as if nothing was done."""
    try:
        yield
    except OSError as error:
        raise UnconfirmedWrite(effect, error.strerror or str(error)) from error


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@contextlib.contextmanager
def lock_file(path: Path, *, shared: bool = False) -> Iterator[None]:
    """A file lock across processes, exclusive or `shared`.

    The kernel releases it when a process dies. The umask decides whether other users may take it.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        # Unlocked explicitly: a process forked meanwhile holds the same open file. Errors are
        # ignored: the work under the lock is done.
        for release in (lambda: fcntl.flock(fd, fcntl.LOCK_UN), lambda: os.close(fd)):
            with contextlib.suppress(OSError):
                release()
