"""Conventions that other readers of these formats miss, on synthetic files.

Others are tested with their formats: position channels and OFFSET (test_bvh), poses stored twice
(test_poselib, test_isaac_lab), rates (test_smpl, test_poselib, test_mimickit), trimmed takes and
names of bones (test_amc), an enum in a pickle (test_protomotions), robots' tables (test_robots).
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.clip_files import human_rigs, rig
from pretrain.motion.feasibility import find_implausible
from pretrain.motion.importers import bvh, deepmimic, read_clip
from pretrain.motion.retargeting.joint_names import find_joints


def test_a_roots_rotation_may_stand_before_its_position():
    position = "Xposition Yposition Zposition"
    rotation = "Zrotation Yrotation Xrotation"
    header = rig.chain()
    swapped = header.replace(f"{position} {rotation}", f"{rotation} {position}")
    assert swapped != header
    rows = [[1.0, 2, 3, 10, 20, 30, 0, 0, 0]] * 2
    turned = [row[3:6] + row[:3] + row[6:] for row in rows]
    one = bvh.read(rig.bvh(header, rows), "a.bvh")
    other = bvh.read(rig.bvh(swapped, turned), "a.bvh")
    np.testing.assert_array_equal(one.root_pos, other.root_pos)
    np.testing.assert_array_equal(one.rotations, other.rotations)


@pytest.mark.parametrize("name", ["mixamorig:Arm", "My Arm", "rig:My Arm.001"])
def test_names_with_a_colon_or_a_space_are_kept_whole(name):
    header = rig.chain().replace("JOINT Arm", f"JOINT {name}")
    assert bvh.read(rig.bvh(header, [[0.5] * 9] * 2), "a.bvh").joints == ("Hips", name)


def test_the_last_frame_counts_without_a_newline_behind_it():
    data = rig.bvh(rig.chain(), [[float(i)] * 9 for i in range(5)])
    assert len(bvh.read(data.rstrip(), "a.bvh")) == len(bvh.read(data, "a.bvh")) == 5


def deepmimic_document(stroll) -> dict:
    return json.loads(human_rigs.deepmimic(stroll))


def test_deepmimic_last_frame_duration_is_ignored(stroll, skeleton):
    clips = []
    for last in (0.0, 1 / 30):
        document = deepmimic_document(stroll)
        document["Frames"][-1][0] = last
        clips.append(deepmimic.read(json.dumps(document).encode(), "a.txt", skeleton))
    np.testing.assert_array_equal(clips[0].root_pos, clips[1].root_pos)
    assert clips[0].duration == pytest.approx(stroll.duration)


def test_signs_of_deepmimics_quaternions_do_not_matter(stroll, skeleton):
    document = deepmimic_document(stroll)
    for frame in document["Frames"]:
        frame[0] = 1 / 20  # most frames of the clip lie between two of the file
    plain = deepmimic.read(json.dumps(document).encode(), "a.txt", skeleton)
    for frame in document["Frames"][::2]:
        frame[4:8] = [-value for value in frame[4:8]]
    flipped = deepmimic.read(json.dumps(document).encode(), "a.txt", skeleton)
    same = np.abs((flipped.root_rot * plain.root_rot).sum(-1))
    np.testing.assert_allclose(same, 1, atol=1e-12)


def test_deepmimic_quaternions_in_xyzw_order_are_reported(stroll, skeleton):
    document = deepmimic_document(stroll)
    for frame in document["Frames"]:
        for at in (4, 8, 12, 16, 21, 25, 30, 35, 39):
            frame[at : at + 4] = [*frame[at + 1 : at + 4], frame[at]]
    clip = read_clip(json.dumps(document).encode(), "a.txt", skeleton)
    assert any("xyzw order" in line for line in find_implausible(clip))


def sided(names: str) -> tuple[str, ...]:
    left = names.split()
    return (*left, *(name.replace("Left", "Right").replace("L_", "R_") for name in left), "Head")


def test_soma_leg_is_a_thigh_and_cmu_leg_is_a_shin():
    soma = sided("LeftLeg LeftShin LeftFoot LeftToeBase LeftArm LeftForeArm LeftHand")
    found = find_joints(soma, "a.bvh")
    assert (soma[found["left_thigh"]], soma[found["left_shin"]]) == ("LeftLeg", "LeftShin")
    cmu = sided("LeftUpLeg LeftLeg LeftFoot LeftToeBase LeftArm LeftForeArm LeftHand")
    found = find_joints(cmu, "a.bvh")
    assert (cmu[found["left_thigh"]], cmu[found["left_shin"]]) == ("LeftUpLeg", "LeftLeg")


def test_wrist_is_preferred_to_the_hand_as_end_of_the_forearm():
    smpl = sided("L_Hip L_Knee L_Ankle L_Toe L_Shoulder L_Elbow L_Wrist L_Hand")
    assert smpl[find_joints(smpl, "a.npz")["left_hand"]] == "L_Wrist"
