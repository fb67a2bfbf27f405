"""Shared parts of the controller's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hlc.config import HlcConfig
from hlc.parent import Parent
from pretrain.sim.backend import ENGINES
from skills_store.store import Store
from tests.hlc.bodies import make_toy, publish_skills
from tests.hlc.puppet import PuppetEngine, puppet_policy


@pytest.fixture(scope="session", autouse=True)
def use_one_thread() -> Iterator[None]:
    """More threads do not speed up tensors this small, and are slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def parent(store: Store) -> Parent:
    return publish_skills(store)


@pytest.fixture(scope="session")
def puppet_skills(store: Store, parent: Parent) -> Iterator[Parent]:
    """Skills of the puppet, whose engine is registered as "puppet"."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENGINES, "puppet", PuppetEngine)
        yield publish_skills(store, policy=puppet_policy(parent.character.skeleton.hinges))


@pytest.fixture
def toy(store: Store, parent: Parent, tmp_path: Path) -> HlcConfig:
    return make_toy(parent, store, tmp_path)
