"""docs/tasks.md: the task of its tutorial is valid, and can be planned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from hlc.config import PlanConfig
from hlc.parent import Parent
from hlc.planner import Planner
from hlc.tasks.base import GoalTask
from hlc.tasks.task import Task, checked_reward, goal_width
from tests.hlc.bodies import clip_states
from tests.hlc.puppet import PuppetEngine

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"


@pytest.fixture
def task() -> Task:
    text = PAGE.read_text(encoding="utf-8")
    [code] = [x for x in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "(GoalTask)" in x]
    names: dict[str, object] = {"__name__": "retreat"}
    exec(compile(code, "retreat.py", "exec", dont_inherit=True), names)
    kind = names["Retreat"]
    assert isinstance(kind, type)
    assert issubclass(kind, GoalTask)
    found = kind()
    return found  # pyright: ignore[reportReturnType]  # GoalTask leaves the rest to its subclasses


def test_tutorial_task_has_valid_goals_features_and_rewards(task: Task, parent: Parent) -> None:
    state = clip_states(parent, 16).map(torch.clone)
    skeleton = parent.character.skeleton
    goal = task.draw(state, torch.Generator().manual_seed(0))
    assert goal.shape == (16, goal_width(task))
    assert task.features(state, goal).shape == (16, 1)
    reward = checked_reward(task, skeleton, state, goal)
    assert ((reward >= 0) & (reward <= 1)).all()
    state.root_rot[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    state.root_vel[:] = -goal * torch.tensor([1.0, 0.0, 0.0])
    assert task.success(skeleton, state, goal).all()
    torch.testing.assert_close(task.reward(skeleton, state, goal), torch.ones(16))


def test_the_tutorials_task_is_planned_without_being_registered(
    task: Task, puppet_skills: Parent
) -> None:
    """The first number of z sets the puppet's speed: it goes backwards."""
    cfg = PlanConfig(candidates=32, horizon=5)
    backend = PuppetEngine(puppet_skills.character, 2 * cfg.candidates, 1)
    planner = Planner(puppet_skills, task, backend, cfg, rng=torch.Generator().manual_seed(0))
    state = clip_states(puppet_skills, 2)
    goal = task.draw(state, torch.Generator().manual_seed(0))
    z = planner(state.flatten().numpy(), goal.numpy())
    assert (z[:, 0] < 0).all()
