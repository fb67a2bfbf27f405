"""The locks of a store that several users of one group write to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skills_store.errors import FailedWrite
from skills_store.store import Store
from tests.skills_store.contents import live, publish

FIRST = 65_501
SECOND = 65_502
GROUP = 65_500
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that the group may write to."""
    tmp_path.chmod(0o755)
    shared = tmp_path / "store"
    shared.mkdir()
    os.chown(shared, FIRST, GROUP)
    shared.chmod(0o2775)
    return shared


def _as(user: int, umask: int, action: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(GROUP)
            os.setuid(user)
            os.umask(umask)
            action()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@as_root
def test_two_users_of_a_group_write_to_one_store(root: Path) -> None:
    store = Store(root)
    _as(FIRST, 0o002, lambda: publish(store))
    _as(SECOND, 0o002, lambda: publish(store, 1))
    _as(SECOND, 0o002, lambda: store.delete("humanoid@1", "old"))
    _as(FIRST, 0o002, lambda: store.gc(grace=0))
    assert live(store) == [2]
    assert store.verify() == ()


@as_root
def test_permission_error_names_the_lock_file(root: Path) -> None:
    store = Store(root)
    _as(FIRST, 0o022, lambda: publish(store))

    def refused() -> None:
        with pytest.raises(
            FailedWrite,
            match=rf"humanoid is not published: Permission denied, in {root}/lock/queue",
        ):
            publish(store, 1)

    _as(SECOND, 0o022, refused)
