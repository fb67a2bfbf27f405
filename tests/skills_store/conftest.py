"""Temporary folders in memory for the stores of these tests, and an event for waiting locks."""

from __future__ import annotations

import fcntl
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory if possible: hundreds of fsyncs to a busy disk would dominate the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def blocked_flock(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a call of `fcntl.flock` has to wait for another holder of the lock."""
    blocked = threading.Event()
    flock = fcntl.flock

    def flock_and_report(fd: int, operation: int) -> None:
        try:
            flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            blocked.set()
            flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock_and_report)
    return blocked
