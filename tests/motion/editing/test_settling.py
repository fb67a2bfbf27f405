"""The edit settle puts a body that is never in flight on the ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.clip import MotionClip
from pretrain.motion.editing.settling import lowest_of_bodies, settle
from pretrain.motion.editing.time import hold
from pretrain.motion.poses import with_hand


@pytest.fixture
def prone(still) -> MotionClip:
    """A stand, laid on its face at a height that drifts by 6 cm."""
    still = hold(still, 1.8, 3.0)
    forwards = from_axis_angle("y", np.full(len(still), np.pi / 2))
    drift = 0.3 + 0.03 * np.sin(np.arange(len(still)) / 15)
    place = np.stack([np.zeros(len(still)), np.zeros(len(still)), drift], -1)
    return replace(still, root_pos=place, root_rot=multiply(forwards, still.root_rot))


def test_a_body_that_floats_comes_to_the_ground_in_every_frame(prone):
    before = lowest_of_bodies(prone).min(-1)
    after = lowest_of_bodies(settle(prone)).min(-1)
    assert np.ptp(before) > 0.05
    assert np.abs(after).max() < 0.01


def test_a_hand_that_sinks_is_raised_and_the_rest_stays(prone):
    hand = prone.skeleton.bodies.index("left_hand")
    down = prone.world_poses[0][:, hand] - np.array([0.0, 0.0, 0.15])
    pressed = with_hand(prone, "left_hand", down)
    assert lowest_of_bodies(pressed)[:, hand].min() < lowest_of_bodies(prone).min() - 0.03
    laid = settle(pressed)
    assert lowest_of_bodies(laid)[:, hand].min() > -0.005
    legs = {"left_shin", "right_shin", "left_thigh", "right_thigh"}
    for body in legs:
        np.testing.assert_allclose(laid.joint_rot[body], pressed.joint_rot[body], atol=0.005)


def test_settling_leaves_a_standing_clip_unchanged(still):
    moved = np.abs(settle(still).body_positions() - still.body_positions()).max()
    assert moved < 0.01
