"""Mirror images are identified by their origin, not by their names."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.evaluation.clip_windows import clip_windows, feature_scale
from pretrain.evaluation.episodes import by_start_clip
from pretrain.motion.dataset import Dataset
from pretrain.motion.library import pack


@pytest.fixture
def named(training_data):
    """Two clips of their own, of which one is named as a mirror image of the other would be."""
    walk = training_data.dataset.clips[0]
    run = training_data.dataset.clips[2]
    assert (walk.mirror_of, run.mirror_of) == ("", "")
    return walk, replace(run, name="walk_mirror")


def test_a_clip_named_like_a_mirror_image_is_an_original(named):
    dataset = Dataset("two", "humanoid", named, (1.0, 1.0))
    assert [clip.name for clip in dataset.originals] == ["walk", "walk_mirror"]
    library = pack(named, (1.0, 1.0))
    assert library.images is None
    targets = clip_windows(named, feature_scale(library, named[0].skeleton, 3), 3)
    assert [target.name for target in targets] == ["walk", "walk_mirror"]
    begun = by_start_clip(torch.tensor([0, 1]), torch.tensor([1.0, 0.5]), library)
    assert {name: float(x) for name, x in begun.items()} == {"walk": 1.0, "walk_mirror": 0.5}


def test_a_mirror_image_belongs_to_its_original_under_any_name(named):
    walk, _ = named
    image = replace(walk.mirrored(), name="other")
    library = pack((walk, image), (1.0, 1.0))
    assert library.images == (1, 0)
    assert Dataset("two", "humanoid", (walk, image), (1.0, 1.0)).originals == (walk,)
