"""Clips that no body can follow are distinguished from those of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.clip import MotionClip
from pretrain.motion.feasibility import find_doubts, find_implausible, find_infeasible


def moved(clip: MotionClip, offset: np.ndarray) -> MotionClip:
    return replace(clip, root_pos=clip.root_pos + offset)


def test_captured_clips_have_no_doubts(training_data):
    assert [line for clip in training_data.dataset.clips for line in find_doubts(clip)] == []


def test_excessive_root_speed_is_reported_with_its_frame(training_data):
    walk = training_data.dataset.clips[0]
    along = np.arange(len(walk))[:, None] * np.array([20 / 30, 0, 0])
    (fast,) = find_doubts(moved(walk, along))
    assert fast.startswith("walk: the root moves at 2")
    assert "in frame" in fast


def test_a_jump_within_one_frame_has_its_whole_speed(training_data):
    walk = training_data.dataset.clips[0]
    jumped = np.where(np.arange(len(walk)) >= 7, 0.5, 0)[:, None] * np.array([1, 0, 0])
    (fast,) = find_infeasible(moved(walk, jumped))
    assert "in frame 6" in fast


def test_excessive_joint_speed_is_reported_with_its_frame(training_data):
    walk = training_data.dataset.clips[0]
    turned = walk.joint_rot["head"].copy()
    turned[7] = [0, 1, 0, 0]  # half a turn, for a frame
    (turns,) = find_infeasible(replace(walk, joint_rot=walk.joint_rot | {"head": turned}))
    assert turns.startswith("walk: head turns at 9")
    assert "in frame 6" in turns or "in frame 7" in turns


def test_ground_penetration_is_reported_with_its_frame(training_data):
    walk = training_data.dataset.clips[0]
    down = np.where(np.arange(len(walk)) == 7, -0.3, 0)[:, None] * np.array([0, 0, 1])
    (deep,) = find_doubts(moved(walk, down).grounded())
    assert deep.startswith("walk: 0.3")
    assert "below the ground in frame 7" in deep
    assert find_doubts(moved(walk, np.array([0, 0, -0.1])).grounded()) == ()


def test_inverted_root_is_reported_with_its_number_of_frames(training_data):
    walk = training_data.dataset.clips[0]
    turned = multiply(walk.root_rot, np.array([0.0, 1.0, 0.0, 0.0]))
    (down,) = find_implausible(replace(walk, root_rot=turned))
    assert f"points down in {len(walk)} of {len(walk)} frames" in down


@pytest.mark.parametrize("turns", [0.0, 1.0, -2.0])
def test_hinge_past_its_range_is_reported_with_the_frame(training_data, turns):
    walk = training_data.dataset.clips[0]
    knee = walk.joint_rot["left_shin"].copy()
    knee[7] = from_axis_angle("y", np.array([-2.0 + 2 * np.pi * turns]))
    (past,) = find_implausible(replace(walk, joint_rot=walk.joint_rot | {"left_shin": knee}))
    assert past.startswith("walk: hinge left_knee is ")
    assert "in frame 7" in past


def test_a_whole_turn_of_a_hinge_is_the_same_pose(training_data):
    walk = training_data.dataset.clips[0]
    turned = {body: -q for body, q in walk.joint_rot.items()}  # the same rotations
    assert find_implausible(replace(walk, joint_rot=turned)) == ()


def test_motionless_clip_is_reported(training_data):
    walk = training_data.dataset.clips[0]
    still = {body: np.repeat(q[:1], len(q), 0) for body, q in walk.joint_rot.items()}
    place = np.repeat(walk.root_pos[:1], len(walk), 0)
    (line,) = find_implausible(replace(walk, joint_rot=still, root_pos=place))
    assert line == f"walk: nothing moves in its {len(walk)} frames"
