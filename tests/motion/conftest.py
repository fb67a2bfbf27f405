"""Clips that several folders of the motion tests need."""

from __future__ import annotations

import pytest

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import MotionClip
from pretrain.motion.dataset import EVERYDAY, Dataset, load_dataset
from pretrain.motion.importers import read_clip


@pytest.fixture(scope="session")
def everyday(skeleton: Skeleton) -> Dataset:
    """The recipe that comes with its clips."""
    return load_dataset("everyday", skeleton)


@pytest.fixture(scope="session")
def stroll(skeleton: Skeleton) -> MotionClip:
    """A walk of several steps."""
    path = EVERYDAY / "cmu_49_01.npz"
    return read_clip(path.read_bytes(), path.name, skeleton)


@pytest.fixture(scope="session")
def still(skeleton: Skeleton) -> MotionClip:
    """A stand."""
    path = EVERYDAY / "cmu_02_10.npz"
    return read_clip(path.read_bytes(), path.name, skeleton)
