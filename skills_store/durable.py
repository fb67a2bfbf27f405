"""Writes that survive a crash and a power cut: temp, fsync, then one atomic step. Knows no skills.

POSIX only, on a local file system: link(2) and flock(2) are not to be trusted over NFS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path


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
def temporary(staging: Path, data: bytes) -> Iterator[Path]:
    """A synced, read-only file on the store's own file system, gone on exit unless it was renamed."""
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
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def append_line(path: Path, line: bytes) -> None:
    """Append one line. A line torn by an earlier crash is closed first, so that it costs only itself."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        write_all(fd, (b"\n" if torn else b"") + line + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_dir(path.parent)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One writer at a time, across processes; the kernel lets go of it when a process dies."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
