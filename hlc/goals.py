"""Goals: the present goal of each world and its remaining decisions."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from hlc.tasks.task import Task, goal_width
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE


class Goals:
    """A goal stays for a uniformly drawn number of whole decisions, between the task's shortest and
    longest time. Raises ValueError where no whole number is between them."""

    def __init__(self, task: Task, num_envs: int, llc_steps: int, rng: Generator):
        self._task = task
        self._rng = rng
        rate = CONTROL_RATE / llc_steps  # decisions a second
        self._shortest = max(1, math.ceil(task.goal_time_min * rate - 1e-6))
        self._longest = math.floor(task.goal_time_max * rate + 1e-6)
        if self._shortest > self._longest:
            raise ValueError(
                f"goal_time_min {task.goal_time_min:g} to goal_time_max {task.goal_time_max:g} s "
                f"has no whole number of decisions of {1 / rate:g} s"
            )
        self.goal = torch.zeros(num_envs, goal_width(task))  # world frame
        # until the next change
        self.decisions_left = torch.zeros(num_envs, dtype=torch.long)

    def draw(self, ids: Tensor, state: CharacterState) -> None:
        """New goals for worlds `ids` (n,) out of all N, whose characters are in `state` (N,
        ...)."""
        if len(ids):
            self.goal[ids] = self._task.draw(state[ids], self._rng)
            self.decisions_left[ids] = torch.randint(
                self._shortest, self._longest + 1, (len(ids),), generator=self._rng
            )

    def advance(self, state: CharacterState) -> Tensor:
        """Count one decision; worlds whose time is up get new goals. Returns those, (N,) bool."""
        self.decisions_left -= 1
        expired = self.decisions_left <= 0
        self.draw(expired.nonzero()[:, 0], state)
        return expired

    def snapshot(self) -> dict[str, Tensor]:
        return {
            "goal": self.goal.clone(),
            "decisions_left": self.decisions_left.clone(),
            "goal_rng": self._rng.get_state(),
        }

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.goal = snapshot["goal"].clone()
        self.decisions_left = snapshot["decisions_left"].clone()
        self._rng.set_state(snapshot["goal_rng"])
