"""GoalEnv: characters with a goal each; what environments over skills and without them share."""

from __future__ import annotations

import torch
from torch import Tensor

from hlc.box_goals import BoxGoals
from hlc.goals import Goals
from hlc.nets import observation
from hlc.tasks.task import Task, check_bodies
from pretrain.rl.rollout import Batch
from pretrain.sim.env import CharacterEnv


class GoalEnv:
    """Episodes that begin with a goal, and observations with it. A subclass takes the steps."""

    def __init__(self, env: CharacterEnv, task: Task, goals: Goals):
        check_bodies(task, env.skeleton)
        self.env = env
        self.task = task
        self.goals = goals
        self.num_envs = env.num_envs
        self.boxes = BoxGoals(task, env.skeleton, env.backend)
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        self.env.reset(ids)
        self.goals.draw(ids, self.env.state())
        self.boxes.place(ids, self.goals.goal)

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = slice(None) if ids is None else ids
        return observation(self.task, self.env.state()[rows], self.goals.goal[rows])

    def snapshot(self) -> dict[str, Tensor]:
        """Everything `restore` needs to go on bit for bit."""
        return {**self.env.snapshot(), **self.goals.snapshot()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.env.restore(snapshot)
        self.goals.restore(snapshot)
