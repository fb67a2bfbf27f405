"""The command line over clips: check, convert and recipe."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.clip_files.rig import bvh, chain
from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.__main__ import main
from pretrain.motion.balance import GRAVITY
from pretrain.motion.check import COLUMNS
from pretrain.motion.dataset import load_dataset
from pretrain.motion.editing.balancing import balance
from pretrain.motion.editing.edits import EDITS
from pretrain.motion.editing.time import hold
from pretrain.motion.importers import npz, read_clip
from pretrain.motion.measures import measure
from pretrain.motion.verdict import BAD, GOOD, USABLE, judge
from pretrain.training_data import load_training_data
from skills_store import places

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, stroll, still, monkeypatch):
    monkeypatch.setattr(places, "verdicts", lambda: tmp_path / "kept")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "walk.npz").write_bytes(npz.write(stroll))
    (tmp_path / "in" / "stand.npz").write_bytes(npz.write(still))
    (tmp_path / "in" / "LICENSE.txt").write_text("no clip")
    return tmp_path


def test_good_clips_are_good_and_the_status_is_0(folder, capsys):
    assert main(["check", str(folder / "in"), "--workers", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["stand", "walk"]
    assert all(line.endswith(("good", "usable")) for line in lines[1:3])


def test_a_file_that_cannot_be_read_is_bad_and_the_status_is_1(folder, capsys):
    (folder / "in" / "arm.bvh").write_bytes(bvh(chain(), [[0.5] * 9] * 40))
    assert main(["check", str(folder / "in"), "--json"]) == 1
    read = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # NaN is not JSON
    rows = {row["name"]: row for row in read}
    assert rows["arm.bvh"]["verdict"] == BAD
    assert "no joint for head" in rows["arm.bvh"]["advice"][0]
    assert rows["walk"]["measures"]["ahead"] == pytest.approx(0.85, abs=0.05)
    assert rows["stand"]["measures"]["fall"] is None


def test_missing_path_exits_with_status_2(folder, capsys):
    assert main(["check", str(folder / "nothing")]) == 2
    assert "no file, no folder with" in capsys.readouterr().err


@pytest.mark.parametrize("frames", ["0", "-3", "few"])
def test_a_preview_of_no_frames_is_an_argument_error(folder, capsys, frames):
    with pytest.raises(SystemExit, match="2"):
        main(["preview", str(folder / "in"), "--frames", frames])
    assert f"{frames}: expected a whole number of 1 or more" in capsys.readouterr().err


def test_convert_skips_clips_that_are_already_converted(folder, skeleton, capsys):
    out = folder / "out"
    arguments = ["convert", str(folder / "in"), str(out), "--licence", "MIT"]
    assert main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""
    walk = read_clip((out / "walk.npz").read_bytes(), "walk.npz", skeleton)
    assert walk.licence == "MIT"


def test_convert_repeats_only_what_changed(folder, skeleton, still, capsys):
    source = folder / "in"
    out = folder / "out"
    arguments = ["convert", str(source), str(out), "--licence", "MIT"]
    assert main(arguments) == 0
    (source / "walk.npz").write_bytes(npz.write(still))
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{out / 'walk.npz'}: {len(still)} frames\n"
    for option, value in (("--licence", "CC0-1.0"), ("--source", "a lab")):
        assert main([*arguments, option, value]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
    walk = read_clip((out / "walk.npz").read_bytes(), "walk.npz", skeleton)
    assert (walk.source, walk.licence, len(walk)) == ("a lab", "MIT", len(still))


@pytest.mark.parametrize("out", ["in", "out"])
def test_convert_names_the_files_that_it_did_not_write_and_keeps_them(folder, capsys, out):
    target = folder / out / "walk.npz"
    target.parent.mkdir(exist_ok=True)
    foreign = (folder / "in" / "walk.npz").read_bytes()
    target.write_bytes(foreign)
    arguments = ["convert", str(folder / "in" / "walk.npz"), str(folder / out)]
    assert main(arguments) == 0
    assert target.read_bytes() == foreign
    assert capsys.readouterr().err.startswith(f"{target}: kept, for it ")
    assert main([*arguments, "--force"]) == 0
    assert target.read_bytes() != foreign


@pytest.mark.parametrize("recipe", ["everyday", "mine.yaml"])
def test_convert_and_recipe_refuse_a_recipe(folder, capsys, monkeypatch, recipe):
    monkeypatch.chdir(folder)
    (folder / "mine.yaml").write_text("name: mine\nmotions: [{file: in/walk.npz}]\n")
    for arguments in (["convert", recipe, "out"], ["recipe", recipe]):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"{recipe}: a recipe, expected a file or a folder")


def test_a_recipe_of_another_character_is_bad(folder, capsys):
    recipe = folder / "mine.yaml"
    recipe.write_text("name: mine\ncharacter: robot\nmotions: [{file: in/walk.npz}]\n")
    assert main(["check", str(recipe)]) == 1
    assert "recipe 'mine' is for 'robot', not for 'humanoid'" in capsys.readouterr().out
    with pytest.raises(ValueError, match="'mine' is for 'robot'"):
        load_training_data("humanoid", str(recipe), 10)


@pytest.mark.parametrize("other", ["again/walk.npz", "again/walk.bvh"])
def test_convert_refuses_two_files_of_one_name_before_it_writes(folder, capsys, other):
    (folder / "in" / "again").mkdir()
    (folder / "in" / other).write_bytes((folder / "in" / "stand.npz").read_bytes())
    assert main(["convert", str(folder / "in"), str(folder / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(folder / "in" / other) in error
    assert str(folder / "in" / "walk.npz") in error
    assert not (folder / "out").exists()


def test_convert_goes_on_after_a_file_that_is_not_there(folder, capsys):
    (folder / "in" / "gone.json").symlink_to(folder / "nothing")
    (folder / "in" / "lost.npz").symlink_to(folder / "nothing")
    assert main(["convert", str(folder / "in"), str(folder / "out")]) == 1
    assert capsys.readouterr().err.count("No such file") == 2
    assert sorted(file.name for file in (folder / "out").iterdir()) == ["stand.npz", "walk.npz"]


def test_a_convert_that_cannot_write_leaves_no_part_of_a_clip(folder, capsys, monkeypatch):
    def fill(path, data):
        path.write_text(str(data[:100]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert main(["convert", str(folder / "in"), str(folder / "out")]) == 2
    path = str(folder / "out" / "stand.npz")
    assert capsys.readouterr().err == f"[Errno 28] No space left on device: {path!r}\n"
    assert not list((folder / "out").iterdir())


def test_a_recipe_of_files_of_one_name_can_be_loaded(folder, capsys, skeleton):
    data = (folder / "in" / "walk.npz").read_bytes()
    for name in ("a/walk", "a/walk_2", "b/walk_mirror", "humanoid3d_walk"):
        (folder / "in" / name).parent.mkdir(exist_ok=True)
        (folder / "in" / f"{name}.npz").write_bytes(data)
    assert main(["recipe", str(folder / "in"), "--relative-to", str(folder)]) == 0
    (folder / "mine.yaml").write_text(capsys.readouterr().out)
    names = [clip.name for clip in load_dataset(str(folder / "mine.yaml"), skeleton).originals]
    assert names == ["walk", "walk_2", "walk_mirror_2", "walk_3", "stand", "walk_4"]


def test_a_recipe_lists_every_clip_of_a_folder(folder, capsys):
    assert main(["recipe", str(folder / "in"), "--relative-to", str(folder)]) == 0
    document = yaml.safe_load(capsys.readouterr().out)
    assert [motion["file"] for motion in document["motions"]] == ["in/stand.npz", "in/walk.npz"]


def test_a_recipe_states_the_licence_of_files_that_have_none(folder, capsys, stroll):
    stated = npz.write(replace(stroll, licence="CC-BY-NC-4.0"))
    (folder / "in" / "walk.npz").write_bytes(stated)
    (folder / "in" / "stand.npz").write_bytes(npz.write(replace(stroll, licence="")))
    assert main(["recipe", str(folder / "in"), "--licence", "MIT"]) == 0
    stand, walk = yaml.safe_load(capsys.readouterr().out)["motions"]
    assert stand["licence"] == "MIT"
    assert "licence" not in walk


def test_arrays_that_are_no_clips_are_left_out_of_a_folder(folder, capsys):
    np.savez(folder / "in" / "neutral_stagei.npz", betas=np.zeros(10))
    assert main(["check", str(folder / "in"), "--workers", "1"]) == 0
    assert "neutral_stagei" not in capsys.readouterr().out


def test_a_folder_with_a_bundled_recipes_name_is_read(folder, capsys, monkeypatch):
    (folder / "in").rename(folder / "everyday")
    monkeypatch.chdir(folder)
    assert main(["check", "everyday", "--workers", "1"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]] == [
        "stand",
        "walk",
    ]


def test_recipe_with_an_unreadable_clip_is_bad_and_check_continues(folder, capsys):
    (folder / "mine.yaml").write_text("name: mine\nmotions: [{file: gone.npz}]\n")
    assert main(["check", str(folder / "mine.yaml"), str(folder / "in")]) == 1
    printed = capsys.readouterr().out
    assert "no such clip" in printed
    assert "stand" in printed


@pytest.mark.parametrize("stated", [True, False])
def test_check_warns_once_of_unknown_licences(folder, capsys, still, stated):
    (folder / "in" / "stand.npz").write_bytes(npz.write(replace(still, licence="")))
    licence = ", licence: MIT" if stated else ""
    motions = (f"  - {{name: {name}, file: in/stand.npz{licence}}}\n" for name in "ab")
    (folder / "mine.yaml").write_text("name: mine\nmotions:\n" + "".join(motions))
    assert main(["check", str(folder / "mine.yaml"), "--json"]) == 0
    warning = "warning: licence unknown: state `licence:` of a, b\n"
    assert capsys.readouterr().err == ("" if stated else warning)


def test_a_reader_that_ends_first_causes_no_error_line(folder):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "pretrain.motion", "check", str(folder / "in"), "--no-keep"]
    ended = subprocess.run(
        command,
        check=False,
        cwd=PROJECT,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_help_explains_every_column_and_argument(capsys):
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    printed = capsys.readouterr().out
    for name in COLUMNS:
        assert re.search(rf"^  {re.escape(name)}  +\w", printed, re.MULTILINE), name
    for name in ("PATH", "--character CHARACTER"):
        assert re.search(rf"^  {name}\s+\w", printed, re.MULTILINE), name


def test_foot_slide_is_reported_with_the_plant_edit(stroll):
    slid = replace(stroll, root_pos=stroll.root_pos * np.array([1.3, 1, 1]))
    verdict = judge(slid)
    assert verdict.verdict == USABLE
    assert any("slides" in line and "`plant`" in line for line in verdict.advice)


def test_ground_penetration_is_reported(stroll):
    sunk = replace(stroll, root_pos=stroll.root_pos - np.array([0, 0, 0.08]))
    assert any(line.startswith("8 cm in the ground") for line in judge(sunk).advice)
    assert measure(sunk).floating == 0


def test_a_stand_on_its_toes_is_reported_with_the_balance_edit(still, stroll):
    raw = hold(still, 1.8, 3.0)
    centered = balance(raw, 0.045)  # the soles' middle
    tilted = balance(raw, 0.15)
    half_a_sole = 0.0885
    assert measure(centered).balance == pytest.approx(half_a_sole, abs=0.01)
    assert measure(raw).balance == pytest.approx(0.02, abs=0.015)
    assert measure(tilted).balance < 0
    assert np.isnan(measure(stroll).balance)
    reported = [line for line in judge(raw).advice if "`balance`" in line]
    assert len(reported) == 1
    assert not any("`balance`" in line for line in judge(centered).advice)


def test_a_root_that_jumps_is_bad(stroll):
    moved = stroll.root_pos.copy()
    moved[50:] += 2.0
    assert judge(replace(stroll, root_pos=moved)).verdict == BAD


def test_non_commercial_licence_is_reported(stroll):
    verdict = judge(replace(stroll, licence="CC-BY-NC-4.0"))
    assert verdict.verdict == GOOD
    assert "not for products" in verdict.advice[-1]


@pytest.mark.parametrize(("peak", "flies"), [(0.02, False), (0.3, True)])
def test_a_gap_under_the_feet_is_no_flight(still, peak, flies):
    """A retargeted walk floats by a centimeter or two, without following gravity."""
    hop = np.zeros((len(still), 3))
    hop[20:33, 2] = peak * np.sin(np.linspace(0, np.pi, 13))
    fall = measure(replace(still, root_pos=still.root_pos + hop)).fall
    assert np.isfinite(fall) is np.bool_(flies)


def test_short_flight_does_not_change_the_fall_of_a_long_one(still):
    hop = np.zeros((len(still), 3))
    since = np.arange(11) / still.fps
    hop[10:21, 2] = GRAVITY / 2 * since * (since[-1] - since)
    hop[30:33, 2] = [0.034, 0.028, 0.034]  # accelerates by 10.8 m/s^2
    fall = measure(replace(still, root_pos=still.root_pos + hop)).fall
    assert fall == pytest.approx(-GRAVITY, abs=0.3)


def test_foot_on_its_side_counts_as_no_contact(still):
    """Its sole faces sideways or up: neither its height nor its slide counts."""
    laid = multiply(from_axis_angle("y", np.full(len(still), np.pi / 2)), still.root_rot)
    place = np.linspace([0, 0, 0.2], [0.5, 0, 0.2], len(still))
    lying = measure(replace(still, root_rot=laid, root_pos=place))
    assert (lying.floating, lying.skate_most) == (0, 0)


def test_a_hinge_that_goes_all_the_way_round_is_usable_with_advice(still):
    round_ = from_axis_angle("x", np.linspace(0, 2 * np.pi, len(still)))
    verdict = judge(replace(still, joint_rot=still.joint_rot | {"right_upper_arm": round_}))
    assert verdict.verdict == USABLE
    advice = f"hinge right_shoulder_x turns on to 6.3 rad in frame {len(still) - 1}"
    assert any(line.startswith(advice) for line in verdict.advice)


@pytest.mark.parametrize("off", [0.035, -0.04])
def test_advised_plant_edit_puts_the_clip_on_the_ground(stroll, off):
    lifted = replace(stroll, root_pos=stroll.root_pos + np.array([0, 0, off]))
    advised = [line for line in judge(lifted).advice if "`plant: {level: true}`" in line]
    assert advised
    planted = EDITS["plant"].model_validate({"level": True}).apply(lifted, no_file)
    assert not any(line in judge(planted).advice for line in advised)
    assert not any("`plant: " in line for line in judge(planted).advice)


def no_file(name):
    raise AssertionError(name)
