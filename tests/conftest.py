"""Fixtures for several folders: the humanoid, its skeleton, the clips, a random generator."""

from __future__ import annotations

import logging
import os

import hypothesis
import pytest
import torch

from pretrain.characters.character import Character, load_character
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.library import MotionLibrary
from pretrain.training_data import TrainingData, load_training_data

# A store under test has only what the test publishes, also in processes that the test starts.
os.environ["REPERTOIRE_BUNDLED"] = "off"

# Small tensors gain nothing from a second thread, and parallel tests lose by it.
os.environ["OMP_NUM_THREADS"] = "1"

# No database of examples in the tree, and no deadline, which a slow machine would miss.
hypothesis.settings.register_profile("without_database", database=None, deadline=None)
hypothesis.settings.load_profile("without_database")


@pytest.fixture(autouse=True)
def _one_thread():
    """Give each test one torch thread, and undo what it sets."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _restore_logging():
    """Remove handlers that a test adds: their streams are closed after it."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    level = root.level
    yield
    root.handlers[:] = handlers
    root.level = level


@pytest.fixture(scope="session")
def humanoid() -> Character:
    return load_character("humanoid")


@pytest.fixture(scope="session")
def skeleton(humanoid: Character) -> Skeleton:
    return humanoid.skeleton


@pytest.fixture(scope="session")
def training_data() -> TrainingData:
    """The locomotion clips, fetched on first use."""
    return load_training_data("humanoid", "locomotion", 3)


@pytest.fixture(scope="session")
def every_clip() -> TrainingData:
    """All default clips."""
    return load_training_data("humanoid", "all", 3)


@pytest.fixture(scope="session")
def library(training_data: TrainingData) -> MotionLibrary:
    return training_data.library


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)
