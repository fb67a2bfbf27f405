"""GoalEnv: characters with a goal each; base of the environments with and without skills."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hlc.box_goals import BoxGoals
from hlc.goals import Goals
from hlc.nets import observation
from hlc.tasks.task import Task, check_bodies, checked_reward
from pretrain.characters.state import CharacterState
from pretrain.rl.rollout import Batch
from pretrain.sim.env import CharacterEnv


@dataclass(frozen=True)
class GoalOutcome:
    """The result of one control step in N worlds."""

    state: CharacterState
    reward: Tensor  # (N,) the task's, of failed worlds too
    failed: Tensor  # (N,) bool: a fall, a broken state or an illegal contact
    timed_out: Tensor  # (N,) bool


class GoalEnv:
    """Episodes, control steps and observations with a goal. A subclass that is an `Env` defines the
    action and for how long it is held."""

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

    def advance(self, targets: Tensor) -> GoalOutcome:
        """One control step towards joint `targets` (N, J) rad; goals with a box follow it."""
        outcome = self.env.step(targets)
        state = self.env.state()
        self.goals.goal = self.boxes.update(self.goals.goal, outcome.broken)
        illegal_contact = self.boxes.illegal_contact(state, self.goals.goal)
        return GoalOutcome(
            state,
            checked_reward(self.task, self.env.skeleton, state, self.goals.goal),
            outcome.fell | outcome.broken | illegal_contact,
            outcome.timed_out,
        )

    def advance_goals(self) -> Tensor:
        """One decision: redraw the goals whose time is over. Returns their worlds, (N,) bool."""
        expired = self.goals.advance(self.env.state())
        self.boxes.place(expired.nonzero()[:, 0], self.goals.goal)
        return expired

    def observe(self, ids: Tensor | None = None) -> Batch:
        """The observation of worlds `ids` (n,), or of all. Goals are copied: a task may return the
        goal as its features, and a later draw overwrites goals."""
        rows = slice(None) if ids is None else ids
        return observation(self.task, self.env.state()[rows], self.goals.goal[rows].clone())

    def snapshot(self) -> dict[str, Tensor]:
        """Everything `restore` needs to continue bit for bit."""
        return {**self.env.snapshot(), **self.goals.snapshot()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.env.restore(snapshot)
        self.goals.restore(snapshot)
