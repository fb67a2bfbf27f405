"""Isaac Lab's AMP files: our own clip, each pose twice, comes back at half the stated rate."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.motion.clip import ClipError
from pretrain.motion.importers import isaac_lab, read_clip
from pretrain.motion.importers.copies import without_copies


def test_a_clip_comes_back_at_half_the_stated_rate(stroll, skeleton):
    clip = without_copies(isaac_lab.read(formats.isaac_lab(stroll), "a.npz", skeleton))
    assert (len(clip), clip.fps) == (len(stroll), 30)
    np.testing.assert_allclose(clip.body_positions(), stroll.body_positions(), atol=1e-5)
    (line,) = clip.warnings
    assert "every pose is stored twice: every second frame kept, 60 -> 30 frames/s" in line


def test_velocities_are_recomputed_from_positions(stroll, skeleton):
    clip = without_copies(isaac_lab.read(formats.isaac_lab(stroll), "a.npz", skeleton))
    np.testing.assert_allclose(clip.states.root_vel, stroll.states.root_vel, atol=1e-3)
    assert (np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=-1) > 0).all()


def test_poses_that_are_stored_once_are_left(stroll, skeleton):
    data = formats.isaac_lab(stroll, copies=1)
    clip = without_copies(isaac_lab.read(data, "a.npz", skeleton))
    assert (len(clip), clip.fps, clip.warnings) == (len(stroll), 30, ())


def test_still_clip_keeps_all_its_frames(still, skeleton):
    frozen = still.body_positions()[:1].repeat(8, axis=0)
    rotations = formats.hanging(still)[1][:1].repeat(8, axis=0)
    data = formats.isaac_lab(still, body_positions=frozen, body_rotations=rotations)
    assert len(without_copies(isaac_lab.read(data, "a.npz", skeleton))) == 8


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fps": np.array(0)}, "its rate is 0"),
        ({"fps": np.zeros(3)}, "its rate is"),
        ({"body_names": np.array(["pelvis"])}, "body_positions has shape"),
        ({"body_names": np.array([f"b{i}" for i in range(15)])}, "no body head"),
        ({"body_names": np.zeros(15)}, "body_names holds float64"),
        ({"body_positions": np.zeros((326, 15, 3))}, "right_upper_arm is 0.000 m|is it in meters"),
        ({"body_positions": np.full((326, 15, 3), np.nan)}, "frame 0 pelvis is nan"),
        ({"body_rotations": np.zeros((326, 15, 4))}, "the quaternion of pelvis has length 0.000"),
        ({"body_rotations": np.zeros((326, 15, 3))}, "body_rotations has shape"),
    ],
)
def test_invalid_npz_is_refused_with_its_reason(stroll, skeleton, changed, message):
    with pytest.raises(ClipError, match=message) as caught:
        read_clip(formats.isaac_lab(stroll, **changed), "a.npz", skeleton)
    assert str(caught.value).startswith("a.npz: ")


def test_centimeters_are_refused(stroll, skeleton):
    positions = np.repeat(stroll.body_positions(), 2, axis=0) * 100
    with pytest.raises(ClipError, match=r"torso is 23\.615 m from its parent, expected 0\.236"):
        isaac_lab.read(formats.isaac_lab(stroll, body_positions=positions), "a.npz", skeleton)


def test_swapped_sides_are_detected_from_body_positions(stroll, skeleton):
    sides = str.maketrans({"L": "right_", "R": "left_"})
    short = [body.replace("left_", "L").replace("right_", "R") for body in skeleton.bodies]
    names = [body.translate(sides) for body in short]
    with pytest.raises(ClipError, match=r"frame 0: .* are left and right exchanged"):
        isaac_lab.read(formats.isaac_lab(stroll, body_names=np.array(names)), "a.npz", skeleton)
