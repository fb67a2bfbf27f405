"""TaskEnv: an action is a skill. Each decision runs the frozen, published policy for `llc_steps`
control steps.

Training runs the served ONNX graph (float32). `step` resets only broken worlds
(`Backend.advance`)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from hlc.goal_env import GoalEnv
from hlc.goals import Goals
from hlc.tasks.task import Task
from pretrain.rl.rollout import Step
from pretrain.sim.env import CharacterEnv
from skills_store.runtime.library import SkillLibrary


@dataclass(frozen=True)
class DecisionConfig:
    """How long a decision is held, and the discount of its progress."""

    llc_steps: int  # control steps
    # gamma of exact potential-based shaping; None: the undiscounted change towards the same goal
    discount: float | None = None


class TaskEnv(GoalEnv):
    """N characters with a goal each. (Peng et al. 2022, section 6.) An `Env` of
    `pretrain.rl.rollout`.

    The task reward is averaged over the decision's control steps; those from a fall on or after a
    timeout count as 0. The extra `states` (N, W, S) holds the last states of the decision,
    `success` (N,) bool where it ended with its goal met and without failure."""

    def __init__(
        self,
        env: CharacterEnv,
        skills: SkillLibrary,
        task: Task,
        goals: Goals,
        decisions: DecisionConfig,
    ):
        super().__init__(env, task, goals)
        self.skills = skills
        self.llc_steps = decisions.llc_steps
        self._discount = decisions.discount

    def step(self, action: Tensor) -> Step:
        """Raw vectors (N, D), projected to the sphere, held for `llc_steps` control steps.

        With a discount the extra `progress` is gamma * potential(s', g') - potential(s, g), with a
        first term of 0 after a fall. Its sum telescopes over goals and preserves the optimum. (Ng,
        Harada and Russell 1999.)"""
        z = on_sphere(action).numpy()
        running = torch.ones(self.num_envs, dtype=torch.bool)
        terminated = ~running
        truncated = ~running
        task_reward = torch.zeros(self.num_envs)
        potential = self._potential()
        for _ in range(self.llc_steps):
            targets = self.skills.act(self.env.state().flatten().numpy(), z)
            outcome = self.advance(torch.from_numpy(targets))
            failed = running & outcome.failed
            running = running & ~failed  # the reward of a step that ends in a fall is 0
            task_reward += running * outcome.reward
            stopped = running & outcome.timed_out
            terminated = terminated | failed
            truncated = truncated | stopped
            running = running & ~stopped
        progress = torch.zeros(self.num_envs)
        if self._discount is None:
            progress = ~terminated * (self._potential() - potential)
        goal_met = self.task.success(self.env.skeleton, self.env.state(), self.goals.goal)
        success = goal_met & ~terminated
        self.advance_goals()
        if self._discount is not None:  # the potential of the next goal
            progress = ~terminated * self._discount * self._potential() - potential
        return Step(
            next_obs=self.observe(),
            reward=task_reward / self.llc_steps,
            terminated=terminated,
            truncated=truncated,
            extras={"states": self.env.states.clone(), "progress": progress, "success": success},
        )

    def _potential(self) -> Tensor:
        """The task's potential, (N,); 0 where it has none."""
        potential = self.task.potential(self.env.skeleton, self.env.state(), self.goals.goal)
        return torch.zeros(self.num_envs) if potential is None else potential


def on_sphere(action: Tensor) -> Tensor:
    """Normalize a raw vector to a skill, (..., D) -> (..., D), unit rows."""
    return normalize(action, dim=-1)
