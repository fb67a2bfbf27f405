"""Recipes that name the skeletons (.asf) of takes (.amc)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.clip_files.human_rigs import bvh_of, human_amc
from pretrain.motion.clip import ClipError
from pretrain.motion.dataset import load_dataset
from pretrain.motion.editing.time import frames
from pretrain.motion.importers import npz

TAKE = ":FULLY-SPECIFIED"


@pytest.fixture
def recipe(tmp_path, stroll) -> Path:
    """A recipe beside two skeletons, whose upper arms are spread and hang where all angles are 0,
    and a folder with the same take under both names.
    """
    head, _, body = human_amc(frames(stroll, np.arange(24))).decode().partition(TAKE)
    hanging = head
    for side in ("1", "-1"):
        hanging = hanging.replace(f"direction {side} 0 -0.03", "direction 0 -1 -0.03")
    assert hanging.count("direction 0 -1 -0.03") == 2
    (tmp_path / "takes").mkdir()
    for name, text in (("spread", head), ("hanging", hanging)):
        (tmp_path / f"{name}.asf").write_text(text)
        (tmp_path / "takes" / f"{name}.amc").write_text(TAKE + body)
    return tmp_path / "mine.yaml"


def write(recipe: Path, *motions: str) -> str:
    lines = "".join(f"  - {{{motion}}}\n" for motion in motions)
    recipe.write_text(f"name: mine\nmirror: false\nmotions:\n{lines}")
    return str(recipe)


def test_one_recipe_may_use_two_asf_skeletons(recipe, skeleton):
    names = ("spread", "hanging")
    motions = [f"file: takes/{name}.amc, asf: {name}.asf" for name in names]
    spread, hanging = load_dataset(write(recipe, *motions), skeleton).clips
    assert spread.digest != hanging.digest
    elbow = skeleton.bodies.index("left_lower_arm")
    heights = [clip.body_positions()[:, elbow, 2].mean() for clip in (spread, hanging)]
    assert heights[1] < heights[0] - 0.2  # m, of an upper arm of 0.27


def test_amc_without_an_asf_beside_it_is_refused(recipe, skeleton):
    with pytest.raises(ClipError, match=r"spread\.amc: a take without its skeleton"):
        load_dataset(write(recipe, "file: takes/spread.amc"), skeleton)


def test_missing_asf_error_lists_the_existing_ones(recipe, skeleton):
    expected = r"spread\.amc: no skeleton .*other\.asf; in that folder: hanging\.asf, spread\.asf"
    with pytest.raises(ClipError, match=expected):
        load_dataset(write(recipe, "file: takes/spread.amc, asf: other.asf"), skeleton)


def test_asf_for_another_format_is_refused(recipe, skeleton, stroll):
    (recipe.parent / "walk.bvh").write_bytes(bvh_of(stroll))
    with pytest.raises(
        ClipError, match=r"walk\.bvh: spread\.asf is given to it, expected an \.amc"
    ):
        load_dataset(write(recipe, "file: walk.bvh, asf: spread.asf"), skeleton)


def test_joints_that_are_named_in_a_file_on_our_skeleton_are_refused(recipe, skeleton, stroll):
    (recipe.parent / "walk.npz").write_bytes(npz.write(stroll))
    expected = (
        r"walk\.npz: skeleton \{left_thigh: Bone_017\}, expected none; formats that take it: "
        r"bvh, asf/amc, amass, protomotions"
    )
    with pytest.raises(ClipError, match=expected):
        load_dataset(write(recipe, "file: walk.npz, skeleton: {left_thigh: Bone_017}"), skeleton)
