"""Every file of shared/mocap imports or is refused with its defect; takes in two formats agree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pretrain.characters.rotations import conjugate, log, multiply
from pretrain.motion.clip import ClipError, MotionClip
from pretrain.motion.fetch import fetched
from pretrain.motion.gait import read_gait, suggested_speed
from pretrain.motion.importers import amc, bvh, deepmimic, mimickit, poselib, read_clip
from pretrain.motion.importers.amc import read_bytes
from skills_store import places
from tests.motion.mocap import find_mocap

MOCAP = find_mocap() or Path("no shared/mocap")
pytestmark = pytest.mark.skipif(not MOCAP.is_dir(), reason="no shared/mocap beside the project")
FILES = 164
NOT_A_NUMBER = "frame 0 head is nan, expected a finite number below 1e+06; 125 of 125 frames are so"
CMU_UNIT = 1000 * 0.0564444  # mm
LEGS = {
    "root": "Hips",
    "lfemur": "LeftUpLeg",
    "ltibia": "LeftLeg",
    "lfoot": "LeftFoot",
    "ltoes": "LeftToeBase",
    "rfemur": "RightUpLeg",
    "rtibia": "RightLeg",
    "rfoot": "RightFoot",
    "rtoes": "RightToeBase",
}
QUATERNIONS = (4, 8, 12, 16, 21, 25, 30, 35, 39)  # first columns of DeepMimic's


def files() -> list[Path]:
    rows = (MOCAP / "manifest.tsv").read_text().splitlines()[1:]
    return [MOCAP / row.split("\t")[0] for row in rows]


def test_every_file_imports_or_is_refused_with_its_defect(skeleton):
    """Rates are doubted only of the two files that store poses twice."""
    refused: dict[str, str] = {}
    copied: set[str] = set()
    jumping: dict[str, str] = {}
    for file in files():
        try:
            clip = read_clip(read_bytes(file), file.name, skeleton)
        except ClipError as error:
            refused[f"{file.parent.name}/{file.name}"] = str(error)
            continue
        assert np.isfinite(clip.states.flatten()).all(), file
        assert suggested_speed(read_gait(clip)) == 1, file
        if any("is stored" in line for line in clip.warnings):
            copied.add(file.name)
        lines = [line for line in clip.warnings if "jumps by" in line]
        if lines:
            jumping[file.name] = lines[0]
    assert len(files()) == FILES
    walks = ("humanoid/humanoid_walk.pkl", "list_format/humanoid_walk.pkl")
    assert refused == dict.fromkeys(walks, f"humanoid_walk.pkl: {NOT_A_NUMBER}")
    assert copied == {"amp_humanoid_run.npy", "amp_humanoid_walk.npy"}
    assert {"05_16.bvh", "07_12.bvh"} == set(jumping)
    assert "jumps by 51 degrees after 3.8" in jumping["05_16.bvh"]
    assert "after 0.01 s, 300 m/s" in jumping["07_12.bvh"]


TAKES = ["02_01", "05_13", "07_01", "16_15", "35_01", "49_01"]


@pytest.mark.parametrize("take", TAKES)
def test_legs_of_a_take_are_where_its_other_format_has_them(take):
    data = read_bytes(MOCAP / "cmu" / "asfamc" / f"{take}.amc")
    one = amc.read(data, "a.amc")
    other = bvh.read((MOCAP / "cmu" / "bvh" / f"{take}.bvh").read_bytes(), "a.bvh")
    lines = data.decode().partition(":DEGREES")[2].split()
    first = int(lines[0]) - 1  # a trimmed take begins later
    ones = one.forward(tuple(one.joints.index(joint) for joint in LEGS))[0]
    others = other.forward(tuple(other.joints.index(joint) for joint in LEGS.values()))[0]
    for joint, same in LEGS.items():
        there = others[other.joints.index(same)][first : first + len(one)]
        apart = np.linalg.norm(ones[one.joints.index(joint)] - there, axis=-1)
        assert len(apart) > 200
        assert apart.max() * CMU_UNIT <= 1.0, joint


def apart(one: MotionClip, other: MotionClip) -> np.ndarray:
    """The largest angle between two clips' rotations in each frame, degrees."""
    pairs = [(one.root_rot, other.root_rot)]
    pairs += [(one.joint_rot[body], other.joint_rot[body]) for body in one.joint_rot]
    turns = [log(multiply(a, conjugate(b))) for a, b in pairs]
    return np.degrees(np.max([np.linalg.norm(turn, axis=-1) for turn in turns], axis=0))


SAME = (
    "backflip",
    "cartwheel",
    "dance_a",
    "dance_b",
    "dance_spin",
    "getup_facedown",
    "getup_faceup",
    "jump",
    "kick",
    "punch",
    "roll",
    "run",
    "spin",
    "spinkick",
)


@pytest.mark.parametrize("name", SAME)
def test_deepmimic_and_mimickit_agree_where_quaternions_are_unit(skeleton, name):
    places_of = (MOCAP / "deepmimic_json", fetched(places.clips()))
    found = (folder / f"humanoid3d_{name}.txt" for folder in places_of)
    source = next(path for path in found if path.exists())
    frames = np.array(json.loads(source.read_bytes())["Frames"])
    frames[:, 0] = 1 / 30  # one frame per control step: nothing is interpolated
    document = json.dumps({"Loop": "none", "Frames": frames.tolist()}).encode()
    one = deepmimic.read(document, name, skeleton)
    file = MOCAP / "mimickit_pkl" / "humanoid" / f"humanoid_{name}.pkl"
    other = mimickit.read(file.read_bytes(), file.name, skeleton)
    lengths = [np.linalg.norm(frames[:, at : at + 4], axis=-1) for at in QUATERNIONS]
    unit = (np.abs(np.array(lengths) - 1) < 1e-3).all(0)
    assert unit.sum() >= 7
    assert apart(one, other)[unit].max() <= 0.1
    np.testing.assert_allclose(one.root_pos, other.root_pos, atol=1e-5)


def test_ase_and_mimickit_agree_on_a_sword_clip_stored_4_times(skeleton):
    npy = MOCAP / "ase_sword_shield" / "RL_Avatar_TurnRight90_Motion.npy"
    pkl = MOCAP / "mimickit_pkl" / "list_format" / "RL_Avatar_TurnRight90_Motion.pkl"
    one = poselib.read(npy.read_bytes(), npy.name, skeleton)
    other = mimickit.read(pkl.read_bytes(), pkl.name, skeleton)
    assert (len(one), len(other)) == (49, 196)
    joint_rot = {body: q[:49] for body, q in other.joint_rot.items()}
    first = MotionClip(
        name="first of four",
        fps=30.0,
        root_pos=other.root_pos[:49],
        root_rot=other.root_rot[:49],
        joint_rot=joint_rot,
        skeleton=skeleton,
    )
    assert apart(one, first).max() <= 0.1
    np.testing.assert_allclose(one.root_pos, first.root_pos, atol=1e-6)


def test_a_run_whose_poses_are_stored_twice_goes_at_its_true_speed(skeleton):
    file = MOCAP / "isaacgymenvs_amp" / "amp_humanoid_run.npy"
    clip = read_clip(file.read_bytes(), file.name, skeleton)
    assert any("every pose is stored twice" in line for line in clip.warnings)
    steps = np.linalg.norm(np.diff(clip.root_pos[:, :2], axis=0), axis=-1) * clip.fps
    assert steps.mean() == pytest.approx(3.24, rel=0.1)
    assert steps.min() > 0.5 * steps.mean()
