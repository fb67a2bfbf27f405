"""A full, failing or read-only disk: a typed error, no partial publish, and a retry succeeds."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from skills_store.__main__ import main
from skills_store.errors import FailedWrite
from skills_store.store import Store
from tests import tiny
from tests.skills_store import traced
from tests.skills_store.contents import FILES, assert_clean, blobs, live, publish

NOBODY = 65534


def check_failing(tmp_path: Path, found: list[traced.Call], errno: str) -> None:
    """Each call fails in turn, and the reported outcome agrees with what is on the disk."""
    ended = []
    for step, call in enumerate(found):
        store = Store(tmp_path / f"{errno}-{step}")
        publish(store)
        status, error = traced.failed(lambda store=store: publish(store, 1), call, errno)
        reopened = Store(store.root)
        assert reopened.verify() == ()
        assert status != traced.CRASHED, (call, error)
        # Some failures are harmless, as in a clean-up.
        if status == traced.DONE or error.startswith("unconfirmed"):
            assert live(reopened) == [1, 2], (call, error)
        else:
            assert error.startswith("not_written: humanoid is not published: "), (call, error)
            assert "\n" not in error
            assert live(reopened) == [1], (call, error)
        ended.append(status)
        assert tiny.publish_tiny(reopened, seed=1).number == len(live(reopened))
        assert_clean(reopened)
    assert traced.REFUSED in ended


@traced.needs_strace
def test_a_failing_call_is_a_typed_error(tmp_path: Path) -> None:
    found = _calls(tmp_path, traced.CHANGES)
    check_failing(tmp_path, list(traced.spread(found, 20)), "ENOSPC")


@pytest.mark.slow
@traced.needs_strace
@pytest.mark.parametrize("errno", ["EIO", "ENOSPC", "EROFS", "EINTR"])
def test_every_failing_call_is_a_typed_error(tmp_path: Path, errno: str) -> None:
    check_failing(tmp_path, _calls(tmp_path, traced.DISK), errno)


def _calls(tmp_path: Path, among: frozenset[str]) -> list[traced.Call]:
    store = Store(tmp_path / "rehearsal")
    publish(store)
    return traced.calls(lambda: publish(store, 1), among)


@pytest.mark.parametrize("most", [0, 1, 100, 5000])
def test_disk_that_fills_up_during_a_write_is_a_typed_error(tmp_path: Path, most: int) -> None:
    """The kernel takes `most` bytes of a file, and refuses the rest."""
    store = Store(tmp_path / "store")
    publish(store)

    def filled() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        with pytest.raises(FailedWrite, match="humanoid is not published: File too large"):
            publish(store, 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        publish(store, 1)

    _in_a_child(filled)
    assert live(store) == [1, 2]
    assert_clean(store)


def test_partial_writes_are_completed(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")

    def piecemeal() -> None:
        write = os.write
        os.write = lambda fd, data: write(
            fd, memoryview(data)[: max(1, memoryview(data).nbytes // 3)]
        )
        publish(store)
        store.alias("humanoid", "prod", 1, "in pieces")

    _in_a_child(piecemeal)
    assert store.verify() == ()
    assert [event.why for event in store.log("humanoid")] == ["in pieces"]
    assert_clean(store)


# Writes, by the start of their error message.
WRITES: dict[str, Callable[[Store], object]] = {
    "humanoid is not published": lambda store: publish(store, 1),
    "humanoid@prod is not moved": lambda store: store.alias("humanoid", "prod", 2),
    "humanoid@canary is not moved": lambda store: store.rollback("humanoid", "canary"),
    "humanoid@1 is not deleted": lambda store: store.delete("humanoid@1", "old"),
    "humanoid@2 is not leased": lambda store: store.lease("humanoid@2", 60),
    "gc stopped": lambda store: store.gc(),
}


def test_a_read_only_disk_is_read_and_refuses_writes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    for seed in (0, 1, 2):
        publish(store, seed)
    for number in (2, 3):
        store.alias("humanoid", "canary", number)
    before = blobs(store)
    store.gc()

    def read_only() -> None:
        assert {f: store.read(store.resolve("humanoid@canary"), f) for f in FILES[2]} == FILES[2]
        assert store.verify() == ()
        assert store.gc(grace=0, dry_run=True).orphans == ()
        assert main(["--store", str(store.root), "ls"]) == 0
        for message, write in WRITES.items():
            with pytest.raises(
                FailedWrite, match=f"{message}: (Read-only file system|Permission denied), in "
            ):
                write(store)
        assert main(["--store", str(store.root), "rollback", "humanoid", "canary"]) == 2

    _frozen(tmp_path, read_only)
    assert capfd.readouterr().err.count("\n") == 1
    assert blobs(store) == before
    assert store.aliases("humanoid") == {"canary": 3}
    publish(store)  # writable again
    assert live(store) == [1, 2, 3, 4]


def _frozen(root: Path, action: Callable[[], None]) -> None:
    """As a user with the right to read everything under `root` and to write nothing."""
    root.chmod(0o755)
    for path in root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def as_nobody() -> None:
        if os.getuid() == 0:  # permissions do not count for root
            os.setuid(NOBODY)
        action()

    try:
        _in_a_child(as_nobody)
    finally:
        for path in root.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def _in_a_child(action: Callable[[], None]) -> None:
    """In a forked child, so that its changes to the process end with it."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
