"""Retargeting recovers our own clip from another rig, and keeps joint limits and contacts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clip_files import rig as rigs
from benchmarks.clip_files.rig import as_rig
from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.clip import ClipError
from pretrain.motion.editing.time import homed
from pretrain.motion.fetch import fetched
from pretrain.motion.importers import bvh, read_clip
from pretrain.motion.measures import measure
from pretrain.motion.retargeting.joint_names import find_joints
from pretrain.motion.retargeting.retarget import retarget
from pretrain.motion.retargeting.settle import settle_retargeted
from pretrain.motion.stance import plant
from pretrain.motion.verdict import BAD, judge
from skills_store import places
from tests.motion.mocap import find_mocap

MOCAP = find_mocap()
needs_mocap = pytest.mark.skipif(MOCAP is None, reason="no ../shared/mocap")
QUARTERS = {
    "x": np.array([np.sqrt(0.5), np.sqrt(0.5), 0, 0]),
    "y": np.array([np.sqrt(0.5), 0, np.sqrt(0.5), 0]),
    "z": np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)]),
}


@pytest.fixture(scope="module")
def walk(skeleton):
    path = fetched(places.clips()) / "walker" / "0walk_forward.txt"
    return read_clip(path.read_bytes(), path.name, skeleton)


def apart(a, b) -> float:
    """The largest distance of bodies relative to the root, median over frames, m."""
    first = a.world_poses[0] - a.root_pos[:, None]
    second = b.world_poses[0] - b.root_pos[:, None]
    return float(np.median(np.linalg.norm(first - second, axis=-1).max(-1)))


def test_retargeting_our_own_body_recovers_the_clip(walk, skeleton):
    back = retarget(as_rig(walk), skeleton)
    assert apart(back, homed(walk)) < 0.01
    moved = np.linalg.norm(back.root_pos[-1] - back.root_pos[0])
    assert moved == pytest.approx(np.linalg.norm(walk.root_pos[-1] - walk.root_pos[0]), rel=1e-6)
    knee = skeleton.hinges.index("right_knee")
    np.testing.assert_allclose(back.joint_pos[:, knee], walk.joint_pos[:, knee], atol=1e-6)


@pytest.mark.parametrize("hanging", [0.0, 1.2])
def test_limbs_that_never_bend_keep_the_axes_of_the_body(still, skeleton, hanging):
    """Noise of 1e-4 rad does not define the axis of a knee."""
    noise = np.random.default_rng(0).normal(0, 1e-4, (len(still), 2))
    none = np.tile([1.0, 0, 0, 0], (len(still), 1))
    angles = {"left_thigh": 0.35, "right_thigh": -0.35}
    angles |= {"left_upper_arm": -hanging, "right_upper_arm": hanging}
    turns = {body: from_axis_angle("x", np.full(len(still), a)) for body, a in angles.items()}
    for body, axis in (("shin", "y"), ("lower_arm", "z")):
        turns |= {f"left_{body}": from_axis_angle(axis, noise[:, 0])}
        turns |= {f"right_{body}": from_axis_angle(axis, noise[:, 1])}
    straight = replace(still, joint_rot=dict.fromkeys(still.joint_rot, none) | turns)
    back = retarget(as_rig(straight), skeleton)
    limbs = ["ankle" not in hinge for hinge in skeleton.hinges]
    np.testing.assert_allclose(back.joint_pos[:, limbs], straight.joint_pos[:, limbs], atol=1e-3)
    assert len(back.warnings) == 4
    warning = (
        "left_thigh and left_shin are straight in every frame; the axis between them is assumed"
    )
    assert warning in back.warnings[0]


@needs_mocap
def test_the_rest_pose_of_a_capture_stands_straight_and_symmetric(skeleton):
    assert MOCAP is not None
    header, _, rows = (MOCAP / "cmu" / "bvh" / "02_01.bvh").read_text().partition("MOTION")
    zeros = [0.0] * len(rows.splitlines()[3].split())
    back = retarget(bvh.read(rigs.bvh(header, [zeros] * 40), "rest.bvh"), skeleton)
    angles = dict(zip(skeleton.hinges, np.abs(back.joint_pos).max(0), strict=True))
    for side in ("left", "right"):
        assert angles[f"{side}_knee"] < 0.01
        assert angles[f"{side}_hip_x"] == pytest.approx(0.353, abs=0.01)
        assert angles[f"{side}_hip_y"] < 0.01
        assert angles[f"{side}_hip_z"] < 0.01


def test_the_unit_of_a_file_does_not_matter(walk, skeleton):
    meters = retarget(as_rig(walk, unit=1.0), skeleton)
    inches = retarget(as_rig(walk, unit=0.0254), skeleton)
    np.testing.assert_allclose(meters.root_pos, inches.root_pos, atol=1e-9)
    assert apart(meters, inches) < 1e-9


@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize(
    "body", ["pelvis", "torso", "head", "right_thigh", "left_upper_arm", "left_foot"]
)
def test_retargeting_is_invariant_to_local_joint_axes(walk, skeleton, axis, body):
    plain = retarget(as_rig(walk), skeleton)
    twisted = retarget(as_rig(walk, twists={body: QUARTERS[axis]}), skeleton)
    assert apart(plain, twisted) < 1e-6
    last = multiply(
        plain.joint_rot["left_foot"], twisted.joint_rot["left_foot"] * np.array([1, -1, -1, -1])
    )
    np.testing.assert_allclose(np.abs(last[:, 0]), 1, atol=1e-6)


def test_missing_joint_error_suggests_a_similar_name(walk, skeleton):
    rig = as_rig(walk)
    joints = tuple("RightUpLegg" if joint == "RightUpLeg" else joint for joint in rig.joints)
    with pytest.raises(ClipError, match=r"no joint for right_thigh \(near: RightUpLegg\)"):
        retarget(replace(rig, joints=joints), skeleton)


def test_swapped_sides_are_detected_from_the_knees(walk, skeleton):
    rig = as_rig(walk)
    swap = {"Left": "Right", "Righ": "Left"}
    joints = tuple(
        swap[joint[:4]] + joint.removeprefix("Left").removeprefix("Right")
        if joint[:4] in swap
        else joint
        for joint in rig.joints
    )
    assert not retarget(rig, skeleton).warnings
    assert (
        "are left and right exchanged?"
        in retarget(replace(rig, joints=joints), skeleton).warnings[0]
    )


def test_wrong_up_axis_is_detected_from_the_trunk(walk, skeleton):
    lying = retarget(replace(as_rig(walk), up="z"), skeleton)
    assert "degrees off the vertical in half of its frames; is z up?" in lying.warnings[-1]


def test_a_joint_may_be_named_for_a_part(walk, skeleton):
    rig = as_rig(walk)
    joints = tuple("Bone_7" if joint == "RightUpLeg" else joint for joint in rig.joints)
    named = retarget(replace(rig, joints=joints), skeleton, {"right_thigh": "Bone_7"})
    np.testing.assert_array_equal(named.states.flatten(), retarget(rig, skeleton).states.flatten())
    with pytest.raises(ClipError, match="no joint 'Bone_8' for right_thigh; Bone_7"):
        retarget(replace(rig, joints=joints), skeleton, {"right_thigh": "Bone_8"})
    with pytest.raises(ClipError, match="'tail' is no part of a body; there are: head"):
        retarget(rig, skeleton, {"tail": "Hips"})


@pytest.mark.parametrize(
    ("joints", "thigh"),
    [
        ("LeftUpLeg LeftLeg LeftFoot LeftShoulder LeftArm LeftForeArm LeftHand Head", "LeftUpLeg"),
        ("LeftHip LeftKnee LeftAnkle LeftCollar LeftShoulder LeftElbow LeftWrist Head", "LeftHip"),
        ("UpperLeg_L LowerLeg_L Foot_L Shoulder_L UpperArm_L LowerArm_L Hand_L Head", "UpperLeg_L"),
        (
            "CC_Base_L_Thigh CC_Base_L_Calf CC_Base_L_Foot CC_Base_L_Clavicle "
            "CC_Base_L_Upperarm CC_Base_L_Forearm "
            "CC_Base_L_Hand CC_Base_Head",
            "CC_Base_L_Thigh",
        ),
        (
            "mixamorig:LeftUpLeg mixamorig:LeftLeg mixamorig:LeftFoot mixamorig:LeftArm "
            "mixamorig:LeftForeArm "
            "mixamorig:LeftHand mixamorig:Head",
            "mixamorig:LeftUpLeg",
        ),
    ],
)
def test_common_rig_joint_names_are_recognized(joints, thigh):
    left = joints.split()
    right = [
        joint.replace("Left", "Right").replace("_L", "_R") for joint in left if "Head" not in joint
    ]
    found = find_joints((*left, *right), "rig")
    assert left[found["left_thigh"]] == thigh
    assert (*left, *right)[found["right_hand"]] == right[-1]
    arm = left[found["left_upper_arm"]]
    assert left.index(arm) == left.index(left[found["left_lower_arm"]]) - 1


@needs_mocap
@pytest.mark.parametrize(
    "take", ["02_01", "02_02", "07_01", "07_04", "35_01", "35_17", "35_20", "49_01"]
)
def test_retargeted_gaits_respect_limits_and_foot_contact(skeleton, take):
    assert MOCAP is not None
    clip = read_clip((MOCAP / "cmu" / "bvh" / f"{take}.bvh").read_bytes(), f"{take}.bvh", skeleton)
    measured = measure(clip)
    assert measured.past_limits == 0
    assert measured.penetration < 0.02
    assert measured.floating < 0.02
    assert measured.skate_most < 0.02


@needs_mocap
def test_rig_with_an_arbitrary_zero_pose_walks_backwards_upright(skeleton):
    assert MOCAP is not None
    clip = read_clip((MOCAP / "cmu" / "bvh_cc" / "006_06.bvh").read_bytes(), "006_06.bvh", skeleton)
    assert measure(clip).ahead == pytest.approx(-1.1, abs=0.1)
    assert clip.root_pos[:, 2].min() > 0.75


@needs_mocap
def test_every_bvh_file_of_the_collection_imports(skeleton):
    assert MOCAP is not None
    files = sorted(MOCAP.rglob("*.bvh"))
    assert len(files) >= 61
    for file in files:
        raw = bvh.read(file.read_bytes(), file.name)
        assert np.isfinite(retarget(raw, skeleton).states.flatten()).all(), file.name


@needs_mocap
@pytest.mark.parametrize(
    "take", ["05_02", "05_03", "05_13", "49_06", "49_07"], ids=lambda take: f"cmu_{take}"
)
def test_dances_and_cartwheels_are_held_within_the_hinges_ranges(skeleton, take):
    """And their feet stand; a warning names the changed joints."""
    assert MOCAP is not None
    file = MOCAP / "cmu" / "bvh" / f"{take}.bvh"
    clip = read_clip(file.read_bytes(), file.name, skeleton)
    measures = measure(clip)
    assert measures.past_limits == 0
    assert measures.skate_most < 0.02
    assert sum("frames are held within the hinges' ranges" in w for w in clip.warnings) == 1


def test_a_joint_held_within_its_range_is_named_in_a_warning(walk, skeleton):
    head = walk.joint_rot["head"].copy()
    head[5] = [np.cos(0.7), 0.0, 0.0, np.sin(0.7)]  # 80 degrees, of 45
    twisted = replace(walk, joint_rot=walk.joint_rot | {"head": head})
    (warning,) = settle_retargeted(twisted).warnings
    assert f"1 of {len(walk)} frames" in warning
    assert "head by up to 3" in warning
    assert "(frame 5)" in warning


def test_a_walk_within_its_ranges_is_only_planted(walk):
    settled = settle_retargeted(walk)
    planted = plant(walk)
    assert settled.warnings == walk.warnings
    for body, turns in planted.joint_rot.items():
        np.testing.assert_array_equal(settled.joint_rot[body], turns)


def test_limb_that_turns_over_is_kept_and_judged_bad(walk):
    foot = walk.joint_rot["left_foot"].copy()
    foot[5:] = [0.0, 0.0, 0.0, 1.0]  # half a turn
    settled = settle_retargeted(replace(walk, joint_rot=walk.joint_rot | {"left_foot": foot}))
    verdict = judge(settled)
    assert verdict.verdict == BAD
    assert any("hinge left_ankle" in line for line in verdict.advice)
