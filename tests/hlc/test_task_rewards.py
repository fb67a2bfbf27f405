"""The rewards of the tasks against values by hand, also where nv-tlabs/ASE differs."""

from __future__ import annotations

import math

import pytest
import torch

from hlc.parent import Parent
from hlc.tasks.getup import Getup
from hlc.tasks.heading import Heading
from hlc.tasks.location import Location
from hlc.tasks.path import Path, curve, nearest
from hlc.tasks.speed import Speed
from hlc.tasks.strike import Strike
from pretrain.characters.rotations import from_axis_angle
from pretrain.characters.state import CharacterState
from tests.hlc.bodies import clip_states


@pytest.fixture
def rest(parent: Parent) -> CharacterState:
    """Two characters at the origin that face along x and do not move."""
    state = clip_states(parent, 2).map(torch.zeros_like)
    state.root_rot[:, 0] = 1.0
    return state


def test_heading_reward_falls_with_sideways_drift_on_any_diagonal(
    rest: CharacterState, parent: Parent
) -> None:
    """nv-tlabs/ASE sums the tangential components, so that one diagonal costs nothing."""
    half = math.sqrt(0.5)
    goal = torch.tensor([[half, half, 1.0, half, half], [half, -half, 1.0, half, -half]])
    rest.root_vel[:, :2] = torch.tensor([[half - 0.3, half + 0.3], [half - 0.3, -half - 0.3]])
    reward = Heading().reward(parent.character.skeleton, rest, goal)
    expected = 0.7 * math.exp(-2.0 * 2 * 0.3**2) + 0.3 * half
    torch.testing.assert_close(reward, torch.full((2,), expected))


def test_heading_rewards_only_facing_when_moving_backwards(
    rest: CharacterState, parent: Parent
) -> None:
    goal = torch.tensor([[1.0, 0.0, 0.5, 1.0, 0.0]]).expand(2, -1)
    rest.root_vel[0, 0] = -0.01
    rest.root_vel[1, 0] = 0.01
    back, forth = Heading().reward(parent.character.skeleton, rest, goal)
    assert float(back) == pytest.approx(0.3)
    assert float(forth) == pytest.approx(0.3 + 0.7 * math.exp(-2 * 0.49**2))


def test_heading_at_speed_0_rewards_standing_in_any_drift(
    rest: CharacterState, parent: Parent
) -> None:
    goal = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0]]).expand(2, -1)
    rest.root_vel[0, 0] = -0.01
    reward = Heading(speed_min=0).reward(parent.character.skeleton, rest, goal)
    torch.testing.assert_close(reward, torch.ones(2), atol=1e-3, rtol=0)


def test_facing_equals_direction_unless_free_facing_is_set(parent: Parent) -> None:
    state = clip_states(parent, 64)
    rng = torch.Generator().manual_seed(0)
    along = Heading().draw(state, rng)
    assert torch.equal(along[:, :2], along[:, 3:])
    free = Heading(free_facing=True).draw(state, rng)
    assert not torch.equal(free[:, :2], free[:, 3:])


def test_location_rewards_stopping_at_the_place(rest: CharacterState, parent: Parent) -> None:
    """In nv-tlabs/ASE running past the place has the full reward."""
    task = Location()
    skeleton = parent.character.skeleton
    goal = torch.zeros(2, 2)
    rest.root_vel[1, 0] = 1.0
    standing, passing = task.reward(skeleton, rest, goal)
    assert float(standing) == pytest.approx(1.0)
    assert float(passing) == pytest.approx(0.5 + 0.5 * math.exp(-4))
    assert task.success(skeleton, rest, goal).tolist() == [True, False]


def test_location_rewards_walking_to_a_distant_place(rest: CharacterState, parent: Parent) -> None:
    rest.root_vel[0, 0] = 1.0
    rest.root_vel[1, 0] = -1.0
    there, away = Location().reward(
        parent.character.skeleton, rest, torch.tensor([[4.0, 0.0]]).expand(2, -1)
    )
    assert float(there) == pytest.approx(0.5 * math.exp(-8) + 0.5)
    assert float(away) == pytest.approx(0.5 * math.exp(-8) + 0.1)


def test_speed_reward_uses_the_velocity_along_the_heading(
    rest: CharacterState, parent: Parent
) -> None:
    rest.root_vel[:, :2] = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    reward = Speed().reward(parent.character.skeleton, rest, torch.ones(2, 1))
    torch.testing.assert_close(reward, torch.tensor([1.0, math.exp(-4.0)]))


def test_a_curve_passes_through_its_ends_and_its_middle_by_hand() -> None:
    control = torch.tensor([0.0, 0.0, 1.0, 2.0, 3.0, 2.0, 4.0, 0.0])
    points, tangents = curve(control)
    torch.testing.assert_close(points[0], control[:2])
    torch.testing.assert_close(points[-1], control[6:])
    torch.testing.assert_close(points[16], torch.tensor([2.0, 1.5]))
    torch.testing.assert_close(tangents[16], torch.tensor([1.0, 0.0]))


def test_distance_from_a_straight_path_is_that_across_it(
    rest: CharacterState, parent: Parent
) -> None:
    straight = torch.tensor([0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 6.0, 0.0])
    place = torch.tensor([[1.234, 0.5], [7.0, 0.0]])
    offset, _ = nearest(place, straight.expand(2, -1))
    torch.testing.assert_close(offset, torch.tensor([[0.0, 0.5], [1.0, 0.0]]))
    goal = torch.cat([straight, torch.ones(1)]).expand(2, -1)
    rest.root_pos[:, 0] = 3.0
    rest.root_vel[:, 0] = torch.tensor([1.0, -1.0])
    forth, back = Path().reward(parent.character.skeleton, rest, goal)
    assert (float(forth), float(back)) == (pytest.approx(1.0), pytest.approx(0.5))


def test_a_root_on_the_curve_has_no_offset_near_its_ends_either() -> None:
    straight = torch.tensor([0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 6.0, 0.0])
    along = torch.cat([torch.linspace(0, 0.3, 20), torch.linspace(5.7, 6, 20)])
    place = torch.stack([along, torch.zeros_like(along)], -1)
    offset, _ = nearest(place, straight.expand(len(place), -1))
    torch.testing.assert_close(offset, torch.zeros_like(offset), atol=1e-5, rtol=0)
    before, _ = nearest(torch.tensor([-0.5, 0.0]), straight)
    torch.testing.assert_close(before, torch.tensor([-0.5, 0.0]))


def test_getup_reward_grows_with_height_and_is_1_when_standing(
    rest: CharacterState, parent: Parent
) -> None:
    """Two characters without a bent joint, one lying on its back and one upright."""
    task = Getup()
    skeleton = parent.character.skeleton
    goal = torch.full((2, 1), 1.25)
    rest.root_rot[0] = torch.tensor([math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0])
    rest.root_pos[:, 2] = torch.tensor([0.15, 0.88])
    lies, stands = task.reward(skeleton, rest, goal)
    assert float(lies) == pytest.approx(0.6 * 0.15 / 1.25, rel=0.02)
    assert float(stands) == pytest.approx(1.0)
    assert task.success(skeleton, rest, goal).tolist() == [False, True]
    torch.testing.assert_close(
        task.distance(skeleton, rest, goal), torch.tensor([1.1, 0.0]), atol=0.01, rtol=0
    )
    rest.root_pos[0, 2] += 0.01
    assert task.reward(skeleton, rest, goal)[0] > lies
    rest.root_vel[1, 0] = 2.0
    assert not task.success(skeleton, rest, goal)[1]


def test_strike_reward_has_approach_and_tilt_terms_and_1_if_down(
    rest: CharacterState, parent: Parent
) -> None:
    task = Strike()
    skeleton = parent.character.skeleton
    rest.root_vel[0, 0] = 1.0
    tilts = torch.tensor([math.pi / 3, math.pi / 2])
    goal = torch.zeros(2, 13)
    goal[:, :3] = torch.tensor([2.0, 0.0, 0.9])
    goal[:, 3] = 1.0
    walks, stands = task.reward(skeleton, rest, goal)
    assert (float(walks), float(stands)) == (pytest.approx(0.4), 0.0)
    goal[:, 3:7] = from_axis_angle("y", tilts)
    tilted, down = task.reward(skeleton, rest, goal)
    assert (float(tilted), float(down)) == (pytest.approx(0.4 + 0.6 * 0.5), 1.0)
    assert task.success(skeleton, rest, goal).tolist() == [False, True]
    torch.testing.assert_close(task.distance(skeleton, rest, goal), torch.tensor([2.0, 0.0]))
    torch.testing.assert_close(task.potential(skeleton, rest, goal), torch.tensor([-2.5, 0.0]))
