"""AmpEnv: characters with a goal each, whose actions are joint targets."""

from __future__ import annotations

import torch
from torch import Tensor

from hlc.box_goals import BoxGoals
from hlc.goals import Goals
from hlc.nets import observation
from hlc.tasks.task import Task, check_bodies, checked_reward
from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ActionScale, CharacterEnv


class AmpEnv:
    """An `Env` of `pretrain.rl.rollout`: the reward is the task's, and the style window is recorded
    for the discriminator."""

    def __init__(self, env: CharacterEnv, action_scale: ActionScale, task: Task, goals: Goals):
        check_bodies(task, env.skeleton)
        self.env = env
        self.action_scale = action_scale
        self.task = task
        self.goals = goals
        self.num_envs = env.num_envs
        self._boxes = BoxGoals(task, env.skeleton, env.backend)
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: Tensor) -> None:
        self.env.reset(ids)
        self.goals.draw(ids, self.env.state())
        self._boxes.place(ids, self.goals.goal)

    def observe(self, ids: Tensor | None = None) -> Batch:
        rows = slice(None) if ids is None else ids
        return observation(self.task, self.env.state()[rows], self.goals.goal[rows])

    def step(self, action: Tensor) -> Step:
        """One control step under actions (N, J), in units of the action scale."""
        outcome = self.env.step(self.action_scale.target(action))
        state = self.env.state()
        self.goals.goal = self._boxes.update(self.goals.goal, outcome.broken)
        illegal_contact = self._boxes.illegal_contact(state, self.goals.goal)
        failed = outcome.fell | outcome.broken | illegal_contact
        reward = ~failed * checked_reward(self.task, self.env.skeleton, state, self.goals.goal)
        expired = self.goals.advance(state)
        self._boxes.place(expired.nonzero()[:, 0], self.goals.goal)
        return Step(
            next_obs=self.observe(),
            reward=reward,
            terminated=failed,
            truncated=outcome.timed_out & ~failed,
            extras={
                "window": self.env.windows().clone(),  # a reset writes into the env's
                "z_clip": torch.zeros(self.num_envs, dtype=torch.long),  # no condition
            },
        )

    def snapshot(self) -> dict[str, Tensor]:
        """Everything `restore` needs to go on bit for bit."""
        return {**self.env.snapshot(), **self.goals.snapshot()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.env.restore(snapshot)
        self.goals.restore(snapshot)
