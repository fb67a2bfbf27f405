"""What every registered task promises."""

from __future__ import annotations

import pytest
import torch

from hlc.config import CONFIG_MODEL
from hlc.goals import Goals
from hlc.parent import Parent
from hlc.tasks import TASKS
from hlc.tasks.task import Task, goal_width
from tests.hlc.bodies import clip_states, moved


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> Task:
    return CONFIG_MODEL(task=request.param).chosen_task()


def test_shapes_are_declared_and_numbers_finite(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 32)
    skeleton = parent.character.skeleton
    goal = task.draw(state, torch.Generator().manual_seed(0))
    assert goal.shape == (32, goal_width(task))
    assert task.features(state, goal).shape[:-1] == (32,)
    for row in (task.reward(skeleton, state, goal), task.distance(skeleton, state, goal)):
        assert row.shape == (32,)
        assert torch.isfinite(row).all()
        assert (row >= 0).all()
    assert (task.reward(skeleton, state, goal) <= 1).all()
    edges = [0, *(part.stop for part in task.goal_layout())]
    assert [part.start for part in task.goal_layout()] == edges[:-1]


def test_same_seed_draws_the_same_bits(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 32)
    a, b, c = (task.draw(state, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_nothing_depends_on_where_the_scene_stands_and_which_way_it_faces(
    task: Task, parent: Parent
) -> None:
    state = clip_states(parent, 32)
    skeleton = parent.character.skeleton
    goal = task.draw(state, torch.Generator().manual_seed(0))
    for yaw, shift in ((1.3, (5.0, -7.0, 0.0)), (-2.9, (-3.0, 0.5, 0.0))):
        there, goal_there = moved(state, goal, yaw, torch.tensor(shift))
        for judge in (task.reward, task.distance):
            expected = judge(skeleton, state, goal)
            torch.testing.assert_close(
                judge(skeleton, there, goal_there), expected, atol=1e-5, rtol=1e-4
            )
        seen = task.features(there, goal_there)
        torch.testing.assert_close(seen, task.features(state, goal), atol=1e-5, rtol=1e-4)


def test_goals_change_within_their_time_and_only_those_that_are_due(
    task: Task, parent: Parent
) -> None:
    state = clip_states(parent, 64)
    llc_steps = 5
    goals = Goals(task, 64, llc_steps, torch.Generator().manual_seed(0))
    goals.draw(torch.arange(64), state)
    assert (goals.left * llc_steps / 30 >= task.goal_time_min - 1e-6).all()
    assert (goals.left * llc_steps / 30 <= task.goal_time_max + 1e-6).all()
    for _ in range(30):
        before = goals.goal.clone()
        due = goals.left == 1
        changed = goals.decided(state)
        assert torch.equal(changed, due)
        assert torch.equal((goals.goal != before).any(-1), due)
