"""AmpEnv: characters with a goal each, whose actions are joint targets."""

from __future__ import annotations

import torch
from torch import Tensor

from hlc.goal_env import GoalEnv
from hlc.goals import Goals
from hlc.tasks.task import Task
from pretrain.rl.rollout import Step
from pretrain.sim.env import ActionScale, CharacterEnv


class AmpEnv(GoalEnv):
    """An `Env` of `pretrain.rl.rollout`: the reward is the task's, and the style window is recorded
    for the discriminator."""

    def __init__(self, env: CharacterEnv, action_scale: ActionScale, task: Task, goals: Goals):
        super().__init__(env, task, goals)
        self.action_scale = action_scale

    def step(self, action: Tensor) -> Step:
        """One control step under actions (N, J), in units of the action scale."""
        outcome = self.advance(self.action_scale.target(action))
        self.advance_goals()
        return Step(
            next_obs=self.observe(),
            reward=~outcome.failed * outcome.reward,
            terminated=outcome.failed,
            truncated=outcome.timed_out & ~outcome.failed,
            extras={
                "window": self.env.windows().clone(),  # a reset overwrites the env's
                "z_clip": torch.zeros(self.num_envs, dtype=torch.long),  # no condition
            },
        )
