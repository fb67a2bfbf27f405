"""How far feet are above or below the reference's: nothing in playback, the lift in a shuffle."""

from __future__ import annotations

import pytest
import torch

from pretrain.assist.foot_tracker import FOOT_ERROR_UNIT, FootTracker
from pretrain.characters.kinematics import forward
from pretrain.characters.state import unflatten
from pretrain.sim.features import foot_heights, style_frame
from pretrain.sim.start_states import read_start_states


@pytest.fixture
def starts(library, skeleton):
    return read_start_states(library, skeleton, 3)


def test_the_heights_of_feet_are_those_of_their_bodies(library, skeleton):
    states = unflatten(library.frames)
    positions, _ = forward(skeleton, states.root_pos, states.root_rot, states.joint_pos)
    feet = [skeleton.bodies.index(foot) for foot in skeleton.feet]
    heights = foot_heights(skeleton, style_frame(skeleton, states))
    torch.testing.assert_close(heights, positions[:, feet, 2], atol=1e-5, rtol=0)


def test_playback_has_no_error_and_a_raised_body_has_its_height(starts, skeleton):
    rows = torch.arange(0, len(starts.frames), 7)
    feet = FootTracker(skeleton, starts)
    frames = starts.frames[rows, -1]
    assert feet.error(frames, rows).max() == 0
    raised = frames.clone()
    raised[:, 0] += 0.02
    expected = torch.full((len(rows),), 0.02 / FOOT_ERROR_UNIT)
    torch.testing.assert_close(feet.error(raised, rows), expected, atol=1e-5, rtol=0)


def test_foot_error_of_a_still_body_is_the_reference_foot_lift(starts, skeleton):
    feet = FootTracker(skeleton, starts)
    rows = torch.arange(len(starts.frames))
    still = starts.frames[:1, -1].expand(len(rows), -1)
    lift = foot_heights(skeleton, starts.frames[:, -1]) - foot_heights(skeleton, still)
    torch.testing.assert_close(feet.error(still, rows), lift.abs().mean(-1) / FOOT_ERROR_UNIT)
    assert feet.error(still, rows).max() > 1
