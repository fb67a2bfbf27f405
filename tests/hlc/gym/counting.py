"""Environments of known returns: an observation is the age of the episode in steps, and each reward
is 1. Environment 0 is truncated after 3 steps, environment 1 terminated after 2.

If the value of a state is 10 times its observation, the undiscounted return from the first step is
3 + 30 in environment 0, and 2 in environment 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from hlc.gym.batch import Bools, DecisionResult, Floats

LENGTHS = np.array([3, 2])
VALUE_PER_STEP = 10.0  # value of a state per step of its episode's age
RETURNS = {  # of the first episode of each world, step by step
    "true": ([33.0, 32.0, 31.0], [2.0, 1.0]),
    "time limit as the end": ([3.0, 2.0, 1.0], [2.0, 1.0]),
}


class CountingBatch:
    """In place of `TaskBatch`."""

    def __init__(self, num_envs: int, task: str, skill: str, settings: dict[str, Any]):
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float32)
        self.action_space = Box(-1.0, 1.0, (2,), np.float32)
        self._age = np.zeros(num_envs, np.int64)

    def seed(self, seed: int) -> None:
        """Nothing is drawn."""

    def reset(self, rows: Bools) -> None:
        self._age[rows] = 0

    def observe(self) -> Floats:
        return self._age[:, None].astype(np.float32)

    def step(self, action: Floats) -> DecisionResult:
        self._age += 1
        ended = self._age >= LENGTHS
        return DecisionResult(
            obs=self.observe(),
            reward=np.ones(2),
            terminated=ended & np.array([False, True]),
            truncated=ended & np.array([True, False]),
            success=np.zeros(2, np.bool_),
        )
