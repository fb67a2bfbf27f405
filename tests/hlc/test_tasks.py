"""The contract of every registered task."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from hlc.config import CONFIG_MODEL
from hlc.goals import Goals
from hlc.parent import Parent
from hlc.tasks import TASKS
from hlc.tasks.base import GoalTask
from hlc.tasks.frames import body_position
from hlc.tasks.stand import Stand
from hlc.tasks.task import Task, check_bodies, checked_reward, goal_width, uniform
from pretrain.characters.rotations import from_axis_angle
from pretrain.characters.state import CharacterState
from serving.models.goal_limits import apply_limits
from skills_store.graph import Slice, Tensor
from tests.hlc.bodies import clip_states, moved


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> Task:
    return CONFIG_MODEL(task=request.param).chosen_task()


def test_shapes_are_declared_and_numbers_finite(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 32)
    skeleton = parent.character.skeleton
    check_bodies(task, skeleton)
    goal = task.draw(state, torch.Generator().manual_seed(0))
    assert goal.shape == (32, goal_width(task))
    assert task.features(state, goal).shape[:-1] == (32,)
    measures = [checked_reward(task, skeleton, state, goal)]
    measures += [x for x in (task.distance(skeleton, state, goal),) if x is not None]
    for row in measures:
        assert row.shape == (32,)
        assert torch.isfinite(row).all()
        assert (row >= 0).all()
    success = task.success(skeleton, state, goal)
    assert success.shape == (32,)
    assert success.dtype == torch.bool
    edges = [0, *(part.stop for part in task.goal_layout())]
    assert [part.start for part in task.goal_layout()] == edges[:-1]


def test_reward_is_within_0_and_1_from_anywhere(task: Task, parent: Parent) -> None:
    """Also for fast states displaced by tens of meters."""
    rng = torch.Generator().manual_seed(0)
    state = clip_states(parent, 256)
    goal = task.draw(state, rng)
    displaced = replace(
        state,
        root_pos=state.root_pos + 30 * torch.randn(256, 3, generator=rng),
        root_vel=5 * torch.randn(256, 3, generator=rng),
    )
    for anywhere in (state, displaced):
        reward = checked_reward(task, parent.character.skeleton, anywhere, goal)
        assert (reward >= 0).all()
        assert (reward <= 1 + 1e-6).all()


def test_met_goals_have_a_higher_reward_than_missed_ones(task: Task, parent: Parent) -> None:
    skeleton = parent.character.skeleton
    state, goal = meet_goal(task, parent)
    success = task.success(skeleton, state, goal)
    assert success.all()
    reward = task.reward(skeleton, state, goal)
    assert (reward > 0.95).all()
    other = task.draw(state, torch.Generator().manual_seed(1))
    missed = ~task.success(skeleton, state, other)
    assert (task.reward(skeleton, state, other) <= reward + 1e-6)[missed].all()
    potential = task.potential(skeleton, state, goal)
    if potential is not None:
        assert (potential <= 1e-6).all()
        lower = task.potential(skeleton, state, other)
        assert lower is not None
        assert (lower <= potential + 1e-5)[missed].all()


def meet_goal(task: Task, parent: Parent) -> tuple[CharacterState, torch.Tensor]:
    """States (16, ...) with goals that they meet."""
    state = clip_states(parent, 16).map(torch.clone)
    goal = task.draw(state, torch.Generator().manual_seed(0))
    name = next(name for name, kind in TASKS.items() if isinstance(task, kind))
    if name not in GOAL_MET:
        pytest.fail(f"add to GOAL_MET how a state meets a goal of {name}")
    GOAL_MET[name](task, parent, state, goal)
    return state, goal


def _hand_at_target(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    goal[:] = body_position(parent.character.skeleton, state, task.required_bodies()[0])


def _upright_at_rest(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    state.root_rot[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    state.root_vel[:] = 0.0
    goal[:] = body_position(parent.character.skeleton, state, "head")[:, 2:]


def _box_on_its_side(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    part = next(part for part in task.goal_layout() if part.name == "box_rot")
    goal[:, part.start : part.stop] = from_axis_angle("x", torch.full((16,), math.pi / 2))


def _at_rest_there(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    state.root_pos[:, :2] = goal
    state.root_vel[:] = 0.0


def _fast_enough(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    state.root_rot[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    state.root_vel[:, :2] = goal * torch.tensor([1.0, 0.0])


def _facing_and_moving(
    task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor
) -> None:
    """Faces and moves along `facing`, which by default is the direction of the goal."""
    facing = goal[:, 3:]
    state.root_rot[:] = from_axis_angle("z", torch.atan2(facing[:, 1], facing[:, 0]))
    state.root_vel[:, :2] = goal[:, 2:3] * facing


def _along_the_path(task: Task, parent: Parent, state: CharacterState, goal: torch.Tensor) -> None:
    """A path begins along the character's heading, here the x axis."""
    state.root_rot[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    goal[:] = task.draw(state, torch.Generator().manual_seed(0))
    state.root_vel[:, :2] = goal[:, 8:] * torch.tensor([1.0, 0.0])


GOAL_MET = {  # name of a task -> a change of states (16, ...) or goals (16, G), in place
    "reach": _hand_at_target,
    "speed": _fast_enough,
    "heading": _facing_and_moving,
    "location": _at_rest_there,
    "path": _along_the_path,
    "stand": _at_rest_there,
    "getup": _upright_at_rest,
    "strike": _box_on_its_side,
}


def test_goals_are_drawn_from_the_declared_ranges(task: Task) -> None:
    ranges = task.goal_ranges()
    assert ranges
    for low, high in ranges.values():
        assert math.isfinite(low)
        assert math.isfinite(high)
        assert low <= high
    drawn = uniform(ranges, (4000,), torch.Generator().manual_seed(0))
    for name, (low, high) in ranges.items():
        slack = 0.01 * (high - low)
        assert low <= drawn[name].min() <= low + slack
        assert high - slack <= drawn[name].max() <= high + 1e-6


def test_a_served_controller_accepts_the_goals_that_its_task_draws(
    task: Task, parent: Parent
) -> None:
    state = clip_states(parent, 256)
    goal = task.draw(state, torch.Generator().manual_seed(0)).numpy()
    slices = tuple(Slice(**asdict(part)) for part in task.goal_layout())
    tensor = Tensor(name="goal", shape=("B", goal.shape[-1]), slices=slices)
    accepted = apply_limits(task.goal_limits(), tensor, goal, state.root_pos.numpy())
    np.testing.assert_array_equal(accepted, goal)


def test_goals_are_deterministic_per_seed(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 32)
    a, b, c = (task.draw(state, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_task_is_invariant_to_scene_position_and_heading(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 32)
    skeleton = parent.character.skeleton
    goal = task.draw(state, torch.Generator().manual_seed(0))
    for yaw, shift in ((1.3, (5.0, -7.0, 0.0)), (-2.9, (-3.0, 0.5, 0.0))):
        there, goal_there = moved(state, goal, task.goal_layout(), yaw, torch.tensor(shift))
        for measure in (task.reward, task.distance, task.potential):
            expected = measure(skeleton, state, goal)
            found = measure(skeleton, there, goal_there)
            if expected is None:
                assert found is None
            else:
                torch.testing.assert_close(found, expected, atol=3e-5, rtol=1e-4)
        seen = task.features(there, goal_there)
        torch.testing.assert_close(seen, task.features(state, goal), atol=1e-5, rtol=1e-4)


def test_goals_resample_exactly_when_their_time_runs_out(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 64)
    llc_steps = 5
    goals = Goals(task, 64, llc_steps, torch.Generator().manual_seed(0))
    goals.draw(torch.arange(64), state)
    assert (goals.decisions_left * llc_steps / 30 >= task.goal_time_min - 1e-6).all()
    assert (goals.decisions_left * llc_steps / 30 <= task.goal_time_max + 1e-6).all()
    for _ in range(61):
        before = goals.goal.clone()
        due = goals.decisions_left == 1
        changed = goals.advance(state)
        assert torch.equal(changed, due)
        assert torch.equal((goals.goal != before).any(-1), due)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (torch.full((4,), torch.nan), "Broken.reward is nan in world 0"),
        (torch.zeros(4, 1), r"Broken.reward has the shape \(4, 1\)"),
    ],
)
def test_nan_or_misshapen_reward_is_refused(
    reward: torch.Tensor, message: str, parent: Parent
) -> None:
    class Broken(TASKS["stand"]):
        def reward(self, skeleton, state, goal):  # pyright: ignore[reportIncompatibleMethodOverride]
            return reward

    state = clip_states(parent, 4)
    with pytest.raises(ValueError, match=message):
        checked_reward(Broken(), parent.character.skeleton, state, torch.zeros(4, 2))


@pytest.mark.parametrize("method", ["draw", "features", "reward", "success"])
def test_a_task_that_lacks_a_method_cannot_be_made(method: str) -> None:
    """The error comes at construction, not in the first step of a training."""
    unfinished = type("Unfinished", (Stand,), {method: getattr(GoalTask, method)})
    with pytest.raises(TypeError, match=f"abstract method '?{method}'?"):
        unfinished()
