"""Edits in recipes: parsing, digests, licences and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clip_files.formats import mimickit
from pretrain.motion.clip import ClipError
from pretrain.motion.dataset import load_dataset
from pretrain.motion.editing.edits import EDITS, parse_edit
from pretrain.motion.importers import npz
from pretrain.motion.recipe import load_recipe


@pytest.fixture
def folder(tmp_path, stroll, still):
    (tmp_path / "walk.npz").write_bytes(npz.write(stroll))
    (tmp_path / "stand.npz").write_bytes(npz.write(still))
    return tmp_path


def write(folder, *motions: str) -> str:
    recipe = folder / "mine.yaml"
    recipe.write_text(
        "name: mine\nmirror: false\nmotions:\n" + "".join(f"  - {motion}\n" for motion in motions)
    )
    return str(recipe)


def test_every_edit_has_its_verb():
    assert {verb: edit.verb for verb, edit in EDITS.items()} == {verb: verb for verb in EDITS}


@pytest.mark.parametrize("verb", EDITS)
def test_every_edit_is_described_and_takes_no_other_field(verb):
    assert EDITS[verb].__doc__
    assert EDITS[verb].model_config.get("extra") == "forbid"


def test_clips_of_one_file_may_have_different_names(folder, skeleton):
    path = write(
        folder,
        "{name: a, file: walk.npz, edits: [{trim: {start: 0, stop: 2}}]}",
        "{name: b, file: walk.npz}",
    )
    dataset = load_dataset(path, skeleton)
    assert [clip.name for clip in dataset.clips] == ["a", "b"]
    assert dataset.clips[0].digest != dataset.clips[1].digest


def test_the_order_and_the_numbers_of_edits_are_in_the_digest(folder, skeleton):
    edits = [
        "[{speed: {factor: 0.9}}, reverse]",
        "[reverse, {speed: {factor: 0.9}}]",
        "[{speed: {factor: 0.8}}, reverse]",
    ]
    path = write(
        folder, *(f"{{name: c{i}, file: walk.npz, edits: {edit}}}" for i, edit in enumerate(edits))
    )
    assert len({clip.digest for clip in load_dataset(path, skeleton).clips}) == 3


def test_licences_of_all_files_that_a_clip_is_made_of_are_kept(folder, skeleton):
    end = "{name: a, file: walk.npz, licence: MIT, edits: [{stand: {file: stand.npz, at: 1.0}}]}"
    clip = load_dataset(write(folder, end), skeleton).clips[0]
    assert clip.licence == "MIT AND LicenseRef-CMU-MoCap"
    assert "stand (file stand.npz, at 1.0)" in clip.source


def test_file_read_by_an_edit_has_the_licence_of_the_recipe(folder, skeleton):
    stand = "{file: stand.npz, licence: CC-BY-NC-4.0}"
    end = "{name: a, file: walk.npz, licence: MIT, edits: [{stand: {file: stand.npz, at: 1.0}}]}"
    edited, _ = load_dataset(write(folder, end, stand), skeleton).clips
    assert edited.licence == "MIT AND CC-BY-NC-4.0"


def test_a_choice_of_licences_stays_one_beside_another_licence(folder, skeleton):
    other = "edits: [{stand: {file: stand.npz, at: 1.0}}]"
    path = write(
        folder,
        f"{{name: a, file: walk.npz, licence: MIT OR Zlib, {other}}}",
        "{name: b, file: walk.npz, licence: MIT OR Zlib, edits: [reverse]}",
    )
    licences = [clip.licence for clip in load_dataset(path, skeleton).clips]
    assert licences == ["(MIT OR Zlib) AND LicenseRef-CMU-MoCap", "MIT OR Zlib"]


def test_recipe_doubts_name_a_non_commercial_clip(folder, skeleton):
    path = write(folder, "{file: walk.npz, licence: CC-BY-NC-4.0}", "{file: stand.npz}")
    doubts = [line for line in load_dataset(path, skeleton).doubts if "products" in line]
    assert doubts == ["walk: licence CC-BY-NC-4.0 keeps what is trained on it out of products"]


def test_one_doubt_names_all_clips_of_unknown_licence(folder, skeleton, stroll):
    (folder / "walk.npz").write_bytes(npz.write(replace(stroll, licence="")))
    other = "{name: mixed, file: stand.npz, edits: [{arms: {file: walk.npz}}]}"
    for stated, names in (("", "walk, mixed"), (", licence: MIT", "")):
        path = write(folder, f"{{file: walk.npz{stated}}}", other)
        doubts = [line for line in load_dataset(path, skeleton).doubts if "unknown" in line]
        assert doubts == ([f"licence unknown: state `licence:` of {names}"] if names else [])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("{cut: {start: 1}}", "an edit is one of trim, reverse"),
        ("{trim: {start: 1}}", "stop"),
        ("{trim: {start: -1, stop: 2}}", "greater than or equal to 0"),
        ("{speed: {factor: 9}}", "less than or equal to 4"),
        ("{trim: {start: 0, stop: 1}, reverse: {}}", "an edit is one of"),
        ("7", "an edit is one of"),
    ],
)
def test_invalid_edit_is_refused_with_its_reason(folder, edit, message):
    with pytest.raises(ValueError, match=message):
        load_recipe(write(folder, f"{{file: walk.npz, edits: [{edit}]}}"))


def test_a_verb_alone_is_an_edit():
    assert str(parse_edit("reverse")) == "reverse"


def test_digest_changes_with_the_revision_of_an_edit(folder, skeleton, monkeypatch):
    path = write(folder, "{file: walk.npz, edits: [reverse, {speed: {factor: 0.9}}]}")
    before = load_dataset(path, skeleton).clips[0]
    monkeypatch.setattr(EDITS["speed"], "revision", 2)
    after = load_dataset(path, skeleton).clips[0]
    assert after.digest != before.digest
    assert after.source == before.source


def test_a_clip_that_another_precedes_keeps_its_name(folder, skeleton):
    path = write(folder, "{file: walk.npz, edits: [{precede: {file: stand.npz, stop: 1}}]}")
    assert [clip.name for clip in load_dataset(path, skeleton).clips] == ["walk"]


@pytest.mark.parametrize(
    "edit",
    ["precede: {file: deep.pkl, stop: 2}", "splice: {file: deep.pkl}", "arms: {file: deep.pkl}"],
)
def test_warnings_of_files_that_edits_read_are_kept(folder, skeleton, stroll, edit):
    deep = replace(stroll, root_pos=stroll.root_pos - np.array([0, 0, 0.5]))
    (folder / "deep.pkl").write_bytes(mimickit(deep))
    path = write(folder, f"{{name: a, file: walk.npz, edits: [{{{edit}}}, {{{edit}}}]}}")
    warnings = load_dataset(path, skeleton).clips[0].warnings
    assert len(warnings) == 1
    assert "raised by" in warnings[0]


OF_MOTION = (
    "{speed: {factor: 2}}",
    "{resample: {rate: 60}}",
    "{repeat: {times: 2}}",
    "{arc: {rate: 1}}",
    "{stride: {factor: 1}}",
    "plant",
    "settle",
)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ("{hold: {at: 1, seconds: 0}}", r"hold \(at 1.0, seconds 0.0\)"),
        ("{trim: {start: 1, stop: 1.04}}, {speed: {factor: 4}}", r"trim .*; speed \(factor 4.0\)"),
        ("{resample: {rate: 240}}, {trim: {start: 1, stop: 1.01}}", "resample .*; trim .*"),
        *(
            (f"{{hold: {{at: 1, seconds: 0}}}}, {edit}", r"hold \(at 1.0, seconds 0.0\)")
            for edit in OF_MOTION
        ),
    ],
)
def test_edits_that_leave_one_frame_are_refused(folder, skeleton, edits, message):
    path = write(folder, f"{{file: walk.npz, edits: [{edits}]}}")
    with pytest.raises(
        ClipError, match=f"^walk: {message}: leaves 1 frame, expected 2 frames or more$"
    ):
        load_dataset(path, skeleton)
