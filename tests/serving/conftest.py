"""A store with a tiny skill library and controller, and the app over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from serving.settings import Settings
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests.serving.local import Local, write_store
from tests.serving.process import Running, running


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that no test changes."""
    return write_store(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store to change."""
    return write_store(tmp_path / "store")


@pytest.fixture
def serve() -> Iterator[Callable[..., Local]]:
    """serve(store.root, max_rows=4): the app over it, which looks at the store again on `refresh()`
    only."""
    with ExitStack() as stack:

        def start(root: Path, **settings: Any) -> Local:
            local = Local(Settings(**{"store": root, "refresh": 3600.0} | settings))
            stack.callback(local.close)
            return local

        yield start


@pytest.fixture(scope="module")
def live(shared: Store) -> Iterator[Running]:
    """The service over the shared store, in a process of its own."""
    with running(shared.root) as service:
        yield service


@pytest.fixture(scope="module")
def library(shared: Store) -> SkillLibrary:
    """The library that it serves, opened without the service."""
    return SkillLibrary.open(shared, "humanoid")


@pytest.fixture(scope="session")
def service(shared: Store) -> Iterator[Local]:
    """The app over the shared store, with small limits."""
    local = Local(Settings(store=shared.root, max_rows=40, max_frames=60, max_body=200_000))
    yield local
    local.close()
