"""Reach: its reward, features and targets against values by hand, and its errors."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError

from hlc.parent import Parent
from hlc.tasks.frames import body_position, gaussian, place_in_heading
from hlc.tasks.reach import SHARPNESS, Reach
from hlc.tasks.task import check_bodies
from pretrain.characters.rotations import from_axis_angle, heading_direction, to_heading_frame
from tests.hlc.bodies import clip_states


def test_reward_is_1_at_target_and_decays_with_squared_distance() -> None:
    hand = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    target = torch.tensor([[1.0, 2.0, 3.0], [0.3, 0.4, 0.0], [0.0, 1.0, 1.0]])
    torch.testing.assert_close(
        gaussian(hand - target, SHARPNESS), torch.tensor([1.0, math.exp(-1.0), math.exp(-4.0)])
    )


def test_target_ahead_is_ahead_whichever_way_the_character_faces(parent: Parent) -> None:
    state = clip_states(parent, 4)
    yaw = torch.tensor([0.0, 1.0, math.pi, -2.0])
    upright = state.map(lambda x: x.clone())
    upright.root_rot[:] = from_axis_angle("z", yaw)
    ahead = torch.stack([yaw.cos(), yaw.sin(), torch.zeros(4)], -1)
    seen = place_in_heading(upright, upright.root_pos + 2 * ahead)
    torch.testing.assert_close(seen, torch.tensor([[2.0, 0.0, 0.0]] * 4), atol=1e-5, rtol=0)


def test_hand_position_matches_skeleton_offsets_in_t_pose(parent: Parent) -> None:
    """The zero pose is a T-pose: from the pelvis up the trunk, and out along the right arm."""
    state = clip_states(parent, 1).map(torch.zeros_like)
    state.root_rot[:, 0] = 1.0
    expected = [[-0.02405, -0.18311 - 0.274788 - 0.258947, 0.236151 + 0.2435]]
    torch.testing.assert_close(
        body_position(parent.character.skeleton, state, "right_hand"), torch.tensor(expected)
    )


def test_targets_lie_in_the_box_around_the_heading(parent: Parent) -> None:
    task = Reach(distance_max=0.5, height_min=0.8, height_max=1.1)
    state = clip_states(parent, 2000)
    target = task.draw(state, torch.Generator().manual_seed(0))
    seen = to_heading_frame(heading_direction(state.root_rot), target - state.root_pos)
    for axis in (0, 1):
        assert -0.5 <= seen[:, axis].min() < -0.48
        assert 0.48 < seen[:, axis].max() <= 0.5
    assert 0.8 <= target[:, 2].min() < 0.81
    assert 1.09 < target[:, 2].max() <= 1.1


def test_range_with_min_above_max_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"height_min 2\.0 is above height_max 1\.2"):
        Reach(height_min=2.0)


def test_reach_works_with_any_body(parent: Parent) -> None:
    state = clip_states(parent, 8)
    skeleton = parent.character.skeleton
    head = body_position(skeleton, state, "head")
    task = Reach(body="head")
    assert (task.reward(skeleton, state, head) == 1).all()
    assert task.success(skeleton, state, head).all()
    assert not Reach().success(skeleton, state, head).any()


def test_unknown_body_error_lists_the_existing_bodies(parent: Parent) -> None:
    with pytest.raises(ValueError, match=r"no body 'tail'; there are: pelvis, .*right_hand"):
        check_bodies(Reach(body="tail"), parent.character.skeleton)
