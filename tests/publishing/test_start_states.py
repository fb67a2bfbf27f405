"""Start states of a version are excerpts of its clips, and are read back unchanged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pretrain.characters.character import load_character
from pretrain.motion.dataset import Dataset, load_dataset
from pretrain.motion.library import MotionLibrary, pack
from pretrain.publishing.lineage import describe_clips
from pretrain.publishing.start_states import EXCERPT, read_starts, upright_excerpts, write_starts
from pretrain.sim.ground import read_ground
from skills_store.admission.start_states import check_starts
from skills_store.manifest import Manifest
from skills_store.store import BUNDLED, Store
from tests import tiny


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load_dataset("all", load_character("humanoid").skeleton)


@pytest.fixture(scope="module")
def library(dataset: Dataset) -> MotionLibrary:
    return pack(dataset.clips, dataset.weights)


@pytest.fixture(scope="module")
def upright(library: MotionLibrary) -> Tensor:
    return read_ground(library, load_character("humanoid").skeleton).upright


def describe(
    dataset: Dataset, library: MotionLibrary, upright: Tensor, most: int
) -> tuple[Manifest, bytes]:
    starts = write_starts(library, upright, most)
    drawn = tiny.skills_manifest()
    lineage = drawn.lineage.model_copy(update={"clips": describe_clips(dataset)})
    return drawn.model_copy(update={"starts": starts[0], "lineage": lineage}), starts[1]


def test_clips_that_fit_are_read_back_as_they_were(
    dataset: Dataset, library: MotionLibrary, upright: Tensor
) -> None:
    manifest, data = describe(dataset, library, upright, most=len(library.frames))
    read = read_starts(manifest, data)
    assert torch.equal(read.frames, library.frames)
    assert torch.equal(read.lengths, library.lengths)
    assert torch.equal(upright_excerpts(manifest), upright)
    torch.testing.assert_close(read.weights, library.weights)


def test_excerpts_respect_frame_budget_and_clip_weights(
    dataset: Dataset, library: MotionLibrary, upright: Tensor
) -> None:
    most = len(library.frames) // 2
    manifest, data = describe(dataset, library, upright, most)
    read = read_starts(manifest, data)
    assert len(read.frames) <= most + EXCERPT * len(library.names)
    assert manifest.starts is not None
    for i, name in enumerate(library.names):
        of_clip = torch.tensor([excerpt.clip == name for excerpt in manifest.starts.excerpts])
        torch.testing.assert_close(read.weights[of_clip].sum(), library.weights[i])
    rows = {tuple(row) for row in library.frames.tolist()}
    assert all(tuple(row) in rows for row in read.frames.tolist())


def test_reading_missing_start_states_is_refused() -> None:
    with pytest.raises(ValueError, match="humanoid was published without start states"):
        read_starts(tiny.skills_manifest(), b"")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-4], "need"),
        (lambda data: data[:-4] + b"\0\0\xc0\x7f", "not finite"),
        (
            lambda data: data[:12] + b"\0\0\0\0" * 4 + data[28:],
            "no unit quaternions, the first in row 0",
        ),
    ],
)
def test_damaged_start_states_fail_the_check(
    dataset: Dataset, library: MotionLibrary, upright: Tensor, damage, reason: str
) -> None:
    manifest, data = describe(dataset, library, upright, most=1000)
    assert manifest.starts is not None
    file = manifest.starts.file
    assert list(check_starts(manifest, {file: data})) == []
    assert any(reason in found for found in check_starts(manifest, {file: damage(data)}))
    assert any("missing" in found for found in check_starts(manifest, {}))


def test_bundled_libraries_have_start_states_and_action_std() -> None:
    bundled = Store(BUNDLED)
    for name in bundled.names():
        manifest = bundled.resolve(name).manifest
        if manifest.kind == "skills":
            assert manifest.starts is not None
            assert manifest.action is not None
            assert manifest.action.std is not None
