"""AMASS: the rates of both releases, the columns of all body models, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.characters.rotations import multiply
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import read_clip, smpl
from pretrain.motion.measures import measure


@pytest.mark.parametrize("key", ["mocap_framerate", "mocap_frame_rate"])
@pytest.mark.parametrize("rate", [59.94, 120.0, 250])
def test_the_rate_of_either_release_is_read(key, rate):
    data = formats.smpl(**{"mocap_framerate": None, key: np.array(rate)})
    assert smpl.read(data, "a.npz").rate == rate


def test_no_rate_is_assumed_and_two_are_refused():
    with pytest.raises(ClipError, match=r"a\.npz: states no rate, expected mocap_framerate or"):
        smpl.read(formats.smpl(mocap_framerate=None), "a.npz")
    with pytest.raises(ClipError, match=r"two rates, mocap_framerate 100\.0, mocap_frame_rate 60"):
        smpl.read(formats.smpl(mocap_frame_rate=np.array(60.0)), "a.npz")
    assert smpl.read(formats.smpl(mocap_frame_rate=np.array(100.0)), "a.npz").rate == 100


@pytest.mark.parametrize("width", [66, 72, 156, 165])
def test_jaw_eyes_and_fingers_move_no_body(width):
    moved = formats.smpl(width=width)
    poses = np.zeros((4, width))
    poses[:, 0] = np.pi / 2
    poses[:, 66:] = 0.3
    other = formats.smpl(poses=poses)
    np.testing.assert_array_equal(smpl.read(moved, "a").rotations, smpl.read(other, "a").rotations)


def test_poses_in_parts_are_read_as_whole_ones():
    poses = np.random.default_rng(0).normal(size=(4, 165))
    whole = smpl.read(formats.smpl(poses=poses), "a.npz")
    parts = formats.smpl(poses=None, root_orient=poses[:, :3], pose_body=poses[:, 3:66])
    np.testing.assert_array_equal(smpl.read(parts, "a.npz").rotations, whole.rotations)


@pytest.mark.parametrize("gender", [np.array("female"), np.array(b"female")], ids=repr)
def test_gender_may_be_text_or_bytes(gender):
    assert len(smpl.read(formats.smpl(gender=gender), "a.npz")) == 4


@pytest.mark.parametrize(("betas", "count"), [(np.ones(16), 1), (None, 0)])
def test_a_warning_says_that_the_shape_of_the_body_is_not_read(betas, count):
    warnings = smpl.read(formats.smpl(betas=betas), "a.npz").warnings
    assert len(warnings) == count
    assert all("a.npz: betas are not read" in warning for warning in warnings)


def test_t_pose_keeps_its_spread_arms_after_retargeting(skeleton):
    data = formats.smpl(count=101, trans=formats.walking(101)[:, [1, 0, 2]])
    clip = read_clip(data, "a.npz", skeleton)
    found = measure(clip)
    assert found.seconds == pytest.approx(1, abs=0.04)
    assert found.past_limits == 0
    head = clip.body_positions()[:, skeleton.bodies.index("head"), 2]
    assert head.min() > 1.2
    hands = [skeleton.bodies.index(f"{side}_hand") for side in ("left", "right")]
    hands = clip.body_positions()[0, hands]
    assert hands[0, 1] > 0.6 > -0.6 > hands[1, 1]  # spread, left to the left


def test_elbow_rotation_is_retargeted(skeleton):
    poses = np.zeros((8, 156))
    poses[:, 0] = np.pi / 2
    poses[:, 3 * smpl.NAMES.index("L_Elbow") + 1] = -1.0  # forwards, about the body's up
    clip = read_clip(formats.smpl(8, poses=poses), "a.npz", skeleton)
    bent = clip.joint_rot["left_lower_arm"]
    straight = read_clip(formats.smpl(8), "a.npz", skeleton).joint_rot["left_lower_arm"]
    angle = 2 * np.arccos(np.abs(multiply(bent, straight * [1, -1, -1, -1])[:, 0]).clip(0, 1))
    np.testing.assert_allclose(angle, 1.0, atol=0.12)  # the average rig's arm is not quite straight


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"poses": np.zeros((4, 63))}, r"63 numbers a pose, expected 66 \(body\)"),
        ({"poses": np.zeros(4)}, "expected one row a frame"),
        ({"trans": np.zeros((5, 3))}, r"trans has shape \(5, 3\), expected \(4, 3\)"),
        ({"trans": np.full((4, 3), np.inf)}, "trans: frame 0 column 0 is inf"),
        ({"poses": np.full((4, 156), np.nan)}, "poses: frame 0 Pelvis is nan"),
        ({"mocap_framerate": np.array(0.0)}, "its rate is 0.0"),
        ({"mocap_framerate": np.array("60,0")}, "its rate is 60,0"),
        ({"poses": np.zeros((1, 156)), "trans": np.zeros((1, 3))}, "1 frames at 100 a second"),
    ],
)
def test_invalid_npz_is_refused_with_its_reason(skeleton, changed, message):
    with pytest.raises(ClipError, match=message) as caught:
        read_clip(formats.smpl(**changed), "a.npz", skeleton)
    assert str(caught.value).startswith("a.npz: ")
