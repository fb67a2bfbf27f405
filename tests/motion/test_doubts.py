"""Clips that no body can follow are told apart from those of people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.motion.clip import MotionClip
from pretrain.motion.doubts import doubts, impossible


def moved(clip: MotionClip, offset: np.ndarray) -> MotionClip:
    return replace(clip, root_pos=clip.root_pos + offset)


def test_what_people_did_is_not_doubted(material):
    assert [line for clip in material.dataset.clips for line in doubts(clip)] == []


def test_what_nobody_can_do_is_named_with_the_frame(material):
    walk = material.dataset.clips[0]
    along = np.arange(len(walk))[:, None] * np.array([20 / 30, 0, 0])
    (fast,) = doubts(moved(walk, along))
    assert fast.startswith("walk: the root moves at 2")
    assert "in frame" in fast


def test_a_joint_that_turns_as_no_joint_can_is_named_with_the_frame(material):
    walk = material.dataset.clips[0]
    turned = walk.joint_rot["head"].copy()
    turned[7] = [0, 1, 0, 0]  # half a turn, for a frame
    (turns,) = impossible(replace(walk, joint_rot=walk.joint_rot | {"head": turned}))
    assert turns.startswith("walk: head turns at 9")
    assert "in frame 6" in turns or "in frame 7" in turns


def test_who_came_out_of_the_ground_is_named_with_the_frame(material):
    walk = material.dataset.clips[0]
    down = np.where(np.arange(len(walk)) == 7, -0.5, 0)[:, None] * np.array([0, 0, 1])
    (deep,) = doubts(moved(walk, down).grounded())
    assert deep.startswith("walk: 0.5")
    assert "below the ground in frame 7" in deep
    assert doubts(moved(walk, np.array([0, 0, -0.1])).grounded()) == ()
