"""MotionLibrary and recipes: sampling, interpolation, windows, and messages for wrong recipes."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.motion.clip import CONTROL_RATE, ClipError
from pretrain.motion.dataset import Dataset, load_dataset
from pretrain.motion.fetch import LICENCE, SOURCE, fetched
from pretrain.motion.library import pack
from pretrain.motion.recipe import load_recipe
from pretrain.training_data import load_training_data
from skills_store import places


def test_reading_at_a_frame_is_that_frame(library):
    clip = torch.tensor([2, 4])
    state = library.at(clip, torch.tensor([3.0, 5.0]) / CONTROL_RATE)
    expected = library.frames[library.starts[clip] + torch.tensor([3, 5])]
    torch.testing.assert_close(state.flatten(), expected, atol=1e-4, rtol=0)


def test_reading_between_frames_stays_between_and_unit(library, rng):
    ids, times = library.sample(500, rng)
    state = library.at(ids, times)
    torch.testing.assert_close(state.root_rot.norm(dim=-1), torch.ones(500))
    assert torch.isfinite(state.flatten()).all()


def test_windows_do_not_cross_clip_boundaries(library):
    """The oldest frames of a window that would begin before its clip are the clip's first frame."""
    windows = library.windows(torch.tensor([0]), torch.tensor([1 / CONTROL_RATE]), 5)
    first = library.at(torch.tensor([0]), torch.tensor([0.0]))
    torch.testing.assert_close(windows.root_pos[0, :4], first.root_pos.expand(4, 3))


def test_clips_are_drawn_by_weight(library, rng):
    ids, _ = library.sample(20_000, rng)
    share = torch.bincount(ids, minlength=len(library.names)) / 20_000
    torch.testing.assert_close(share, library.weights, atol=0.02, rtol=0)


def test_sampling_repeats_with_its_seed(library):
    draws = [library.sample(10, torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(draws[0][1], draws[1][1])


def test_one_clip_alone_packs(training_data):
    assert pack(training_data.dataset.clips[:1], (1.0,)).durations[0] == pytest.approx(
        1.267, abs=0.05
    )


def test_locomotion_has_seven_clips_and_their_mirrors(training_data):
    assert len(training_data.dataset.clips) == 14
    assert all(
        clip.digest.startswith("sha256:") and clip.licence for clip in training_data.dataset.clips
    )


def test_infeasible_clip_is_left_out_and_digest_unchanged(tmp_path, skeleton):
    """It changes neither the training data nor the units of the measures."""
    for name, speed in (("walk", 0), ("run", 0), ("fast", 20)):
        file = fetched(places.clips()) / f"humanoid3d_{'run' if name == 'run' else 'walk'}.txt"
        motion = json.loads(file.read_text())
        for i, frame in enumerate(motion["Frames"]):
            frame[1] += speed * i * motion["Frames"][0][0]
        (tmp_path / f"{name}.txt").write_text(json.dumps(motion))

    def dataset(*names: str) -> Dataset:
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(
            "name: mine\nmotions:\n" + "".join(f"  - {{file: {name}.txt}}\n" for name in names)
        )
        return load_dataset(str(recipe), skeleton)

    whole = dataset("walk", "fast", "run")
    sound = dataset("walk", "run")
    assert whole.digest == sound.digest
    assert [clip.name for clip in whole.left_out] == ["fast"]
    (doubt,) = (line for line in whole.doubts if line not in sound.doubts)
    assert doubt.startswith("fast: the root moves at 2")
    assert doubt.endswith("left out")
    with pytest.raises(
        ClipError, match=r"'mine': none of its clips can be performed: fast: the root moves"
    ):
        dataset("fast")


def test_recipe_is_loaded_from_a_path(tmp_path, skeleton):
    (tmp_path / "mine.txt").write_bytes(
        (fetched(places.clips()) / "humanoid3d_walk.txt").read_bytes()
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: mine\nmirror: false\nmotions: [{file: mine.txt, licence: CC0-1.0}]\n")
    dataset = load_dataset(str(recipe), skeleton)
    assert [clip.name for clip in dataset.clips] == ["mine"]
    assert dataset.clips[0].licence == "CC0-1.0"


def test_recipe_states_source_and_licence_of_a_fetched_clip(tmp_path, skeleton):
    file = "file: pybullet:humanoid3d_walk.txt"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"name: mine\nmotions: [{{{file}, name: a}}, "
        f"{{{file}, name: b, source: my copy, licence: MIT}}]\n"
    )
    own, stated = load_dataset(str(recipe), skeleton).originals
    assert (own.source, own.licence) == (SOURCE, LICENCE)
    assert (stated.source, stated.licence) == ("my copy", "MIT")


def test_recipe_low_pass_changes_the_digest_and_is_reported(tmp_path, skeleton):
    (tmp_path / "mine.txt").write_bytes(
        (fetched(places.clips()) / "humanoid3d_run.txt").read_bytes()
    )
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: mine\nmotions: [{file: mine.txt, licence: MIT}]\n")
    raw = load_dataset(str(recipe), skeleton)
    recipe.write_text("name: mine\nmotions: [{file: mine.txt, licence: MIT, low_pass: 4}]\n")
    smooth = load_dataset(str(recipe), skeleton)
    assert smooth.digest != raw.digest
    assert raw.doubts == ()
    (doubt,) = smooth.doubts
    assert doubt.startswith("mine: low-passed at 4 Hz")
    steepest = [np.diff(d.clips[0].root_pos[:, 2], 2).min() * 30**2 for d in (raw, smooth)]
    assert steepest[0] < -30  # m/s^2 in flight, three times gravity
    assert steepest[1] > -20
    assert smooth.clips[0].source.startswith("low-passed at 4 Hz from sha256:")
    assert raw.clips[0].digest in smooth.clips[0].source


@pytest.mark.parametrize("recipe", ["locomotion", "all"])
def test_smooth_recipe_differs_from_its_base_only_in_the_run(skeleton, recipe):
    raw = load_dataset(recipe, skeleton)
    smooth = load_dataset(f"{recipe}_smooth", skeleton)
    assert smooth.name == f"{recipe}_smooth"
    assert [clip.name for clip in smooth.originals] == [clip.name for clip in raw.originals]
    assert smooth.weights == raw.weights
    changed = [
        a.name for a, b in zip(raw.originals, smooth.originals, strict=True) if a.digest != b.digest
    ]
    assert changed == ["run"]
    for a, b in zip(raw.originals, smooth.originals, strict=True):
        far = np.linalg.norm(a.body_positions() - b.body_positions(), axis=-1).max()
        # the root alone is moved by 0.015 m, with its turns by 0.043: a foot at full swing is moved
        # most
        assert (0.06 < far < 0.09) if a.name == "run" else far < 1e-9


def test_a_recipe_may_build_on_another(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        """name: mine
base: all
motions:
  - {file: "pybullet:humanoid3d_run.txt", weight: 3}
  - {file: mine.txt, weight: 2}
"""
    )
    mine, folder = load_recipe(str(recipe))
    ours, _ = load_recipe("all")
    assert folder == tmp_path
    assert (mine.name, mine.mirror, mine.character) == ("mine", ours.mirror, ours.character)
    assert [motion.file for motion in mine.motions] == [
        *(motion.file for motion in ours.motions),
        "mine.txt",
    ]
    changed = {a.file: b.weight for a, b in zip(ours.motions, mine.motions, strict=False) if a != b}
    assert changed == {"pybullet:humanoid3d_run.txt": 3}


def test_recipe_overrides_its_base_with_default_values(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: mine\nbase: locomotion_smooth\nmirror: false\nmotions: [{file: "
        '"pybullet:humanoid3d_run.txt", low_pass: null}]'
    )
    mine, _ = load_recipe(str(recipe))
    assert not mine.mirror
    assert [motion.low_pass for motion in mine.motions] == [None] * 7


def test_a_recipe_leaves_out_motions_of_its_base():
    walks, _ = load_recipe("mobility_walks")
    whole, _ = load_recipe("mobility")
    run = "pybullet:humanoid3d_run.txt"
    assert walks.motions == tuple(motion for motion in whole.motions if motion.key != run)
    assert len(walks.motions) == len(whole.motions) - 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            "base: all\nwithout: [fly]\nmotions: [{file: a.txt}]",
            "recipe.yaml: without: recipe 'all' has no motion 'fly'; it has: .*walk",
        ),
        (
            "without: [run]\nmotions: [{file: a.txt}]",
            "without: there is no base to leave them out of",
        ),
        (
            "base: nothing\nmotions: [{file: a.txt}]",
            "no dataset recipe 'nothing'; there are: all, all_smooth, everyday, everyday_ground, ",
        ),
        ("base: ../all\nmotions: [{file: a.txt}]", "base: String should match pattern"),
        ("base: all\nmotions: []", "motions: Tuple should have at least 1 item"),
        (
            "motions: [{file: a.txt}, {file: b.txt}, {file: a.txt}]",
            "motions: each file once; more than once: a.txt",
        ),
    ],
)
def test_invalid_recipe_is_refused_with_its_reason(tmp_path, document, message):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"name: mine\n{document}\n")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_recipe(str(recipe))


def short(document: dict[str, Any]) -> None:
    document["Frames"] = document["Frames"][:3]


def still(document: dict[str, Any]) -> None:
    document["Frames"] = document["Frames"][:1] * 30


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("walk", short, "walk has 3 frames; a style window needs 3, and its jerk 4"),
        ("walk", still, "no joint moves"),
    ],
)
def test_unlearnable_clip_is_refused_before_training(tmp_path, name, change, message):
    document = json.loads((fetched(places.clips()) / "humanoid3d_walk.txt").read_text())
    change(document)
    (tmp_path / f"{name}.txt").write_text(json.dumps(document))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"name: mine\nmirror: false\nmotions: [{{file: {name}.txt}}]\n")
    with pytest.raises(ValueError, match=message):
        load_training_data("humanoid", str(recipe), 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nmotions: []", "motions"),
        ("name: x\nmotions: [{file: a.txt, wait: 2}]", "wait"),
        ("name: x\nmotions: [{file: a.txt, weight: -1}]", "weight"),
        *(
            (f"name: x\nmotions: [{{file: a.txt, low_pass: {hz}}}]", "low_pass")
            for hz in ("0", ".inf", ".nan", "true", "100")
        ),
        *(
            (f"name: x\nmotions: [{{file: a.txt, weight: {weight}}}]", "weight")
            for weight in (".inf", ".nan", "0", "1" * 400)
        ),
        ("name: [", "recipe.yaml"),
        (f"name: x\nmotions: [{{file: a.txt, weight: {'9' * 5000}}}]", "recipe.yaml"),
        ("[" * 5000, "recipe.yaml"),
    ],
)
def test_invalid_recipe_error_names_the_key(tmp_path, text, message):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_recipe(str(recipe))
    assert str(caught.value).startswith(str(recipe))


RECIPE_FIELDS = "A recipe has: name, base, character, mirror, without, motions"
MOTION_FIELDS = "A motion has: file, skeleton, asf, name, edits, weight, low_pass, source, licence"
ONE = "name: x\nmotions: [{file: a.txt"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", f"expected {{name: ..., motions: ...}}, got None. {RECIPE_FIELDS}"),
        (
            f"{ONE}}}]\nmirrored: true",
            f"mirrored: Extra inputs are not permitted, got True. {RECIPE_FIELDS}",
        ),
        (
            f"{ONE}, wait: 2}}]",
            f"motions.0.wait: Extra inputs are not permitted, got 2. {MOTION_FIELDS}",
        ),
        ("name: x\nmotions: [a]", f"motions.0: expected {{file: ...}}, got 'a'. {MOTION_FIELDS}"),
        (
            f"{ONE}, edits: [reverse, {{speed: 2}}]}}]",
            "motions.0.edits.1: expected {speed: {factor: ...}}, got 2. Edit `speed` has: factor",
        ),
        (
            f"{ONE}, edits: [{{plant: 1}}, {{hold: {{at: 1, seconds: -1}}}}]}}]",
            "motions.0.edits.0: expected {plant: {level: ...}}, got 1; motions.0.edits.1.seconds: "
            "Input should be greater than or equal to 0, got -1. Edit `plant` has: level. "
            "Edit `hold` has: at, seconds",
        ),
        (
            f"{ONE}, edits: [{{reverse: 1}}]}}]",
            "motions.0.edits.0: expected {reverse: {}}, got 1. Edit `reverse` has: no fields",
        ),
    ],
)
def test_recipe_error_lists_the_fields_of_its_place(tmp_path, text, error):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{recipe}: {error}") + "$"):
        load_recipe(str(recipe))


@pytest.mark.parametrize("edit", ["fly", "[reverse]", "{fly: {}}", "{}", "{trim: {}, hold: {}}"])
def test_unknown_edit_error_lists_the_edits_alone(tmp_path, edit):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"{ONE}, edits: [{edit}]}}]")
    with pytest.raises(ValueError, match="an edit is one of trim, reverse") as caught:
        load_recipe(str(recipe))
    assert " has: " not in str(caught.value)


def test_binary_recipe_is_refused(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_bytes(b"name: \xff\xfe")
    with pytest.raises(ValueError, match=r"recipe\.yaml: .*utf-8"):
        load_recipe(str(recipe))


def test_unknown_recipe_and_missing_clip_list_what_exists(tmp_path, skeleton):
    with pytest.raises(FileNotFoundError, match="locomotion"):
        load_recipe("swimming")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: x\nmotions: [{file: a.txt}]")
    (tmp_path / "b.txt").touch()
    with pytest.raises(ClipError, match=r"b\.txt"):
        load_dataset(str(recipe), skeleton)
