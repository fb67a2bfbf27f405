"""The recipe everyday_ground: everyday, and a clip that gets up."""

from __future__ import annotations

import numpy as np
import pytest

from pretrain.characters.rotations import rotate, up_axis
from pretrain.motion import fetch
from pretrain.motion.dataset import EVERYDAY, Dataset, load_dataset
from pretrain.motion.licences import is_non_commercial
from pretrain.motion.verdict import GOOD, judge
from pretrain.sim.ground import read_ground
from pretrain.training_data import load_training_data

GET_UP = "get_up"


@pytest.fixture(scope="module")
def ground(skeleton) -> Dataset:
    return load_dataset("everyday_ground", skeleton)


@pytest.fixture(scope="module")
def get_up(ground):
    return next(clip for clip in ground.originals if clip.name == GET_UP)


def test_dataset_is_everyday_plus_the_getup_clip(ground, everyday):
    names = [clip.name for clip in ground.originals]
    assert names == [*(clip.name for clip in everyday.originals), GET_UP]
    assert ground.doubts == ()


def test_getup_clip_is_good(get_up):
    verdict = judge(get_up)
    assert (verdict.verdict, verdict.advice) == (GOOD, ())
    assert verdict.measures
    assert verdict.measures.penetration < 0.02


def test_getup_clip_starts_face_down_and_ends_standing(get_up):
    front = rotate(get_up.root_rot, np.array([1.0, 0.0, 0.0]))
    assert front[0, 2] < -0.9
    assert get_up.root_pos[0, 2] < 0.2
    assert up_axis(get_up.root_rot)[-1, 2] > 0.98
    last = get_up.body_positions()[-10:]
    assert np.abs(np.diff(last, axis=0)).max() * get_up.fps < 0.25


def test_only_the_getup_clip_is_marked_rising():
    data = load_training_data("humanoid", "everyday_ground", 3)
    rising = read_ground(data.library, data.character.skeleton).rising.tolist()
    named = {name for name, rises in zip(data.library.names, rising, strict=True) if rises}
    assert named == {GET_UP, f"{GET_UP}_mirror"}


def test_getup_licences_permit_shipping_trained_weights(get_up):
    assert get_up.licence == "Zlib AND MIT AND LicenseRef-CMU-MoCap"
    assert not is_non_commercial(get_up.licence)
    text = (EVERYDAY / "LICENSE.txt").read_text(encoding="utf-8")
    assert "getup_facedown.npz: Zlib AND MIT" in text


def test_recipe_needs_no_download(monkeypatch, skeleton):
    def refuse(cache):
        raise AssertionError(cache)

    monkeypatch.setattr(fetch, "fetched", refuse)
    assert load_dataset("everyday_ground", skeleton).clips
