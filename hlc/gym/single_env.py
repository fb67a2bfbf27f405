"""SingleEnv: one character with a task, as `gymnasium.Env`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from hlc.gym.batch import Floats, TaskBatch

ALL_WORLDS = np.ones(1, np.bool_)


class SingleEnv(gymnasium.Env[Floats, Floats]):
    """`skill` and `settings` as in TaskBatch, without `num_envs`. A fall terminates, time
    truncates."""

    metadata = {"render_modes": []}  # noqa: RUF012  gymnasium declares it as an instance variable

    def __init__(self, task: str, skill: str = "humanoid@latest", **settings: Any):
        if "num_envs" in settings:
            count = settings["num_envs"]
            raise ValueError(f"num_envs={count}: this is one world; make_vec makes several")
        self._batch = TaskBatch(1, task, skill, settings)
        self.observation_space = self._batch.observation_space
        self.action_space = self._batch.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._batch.seed(seed)
        self._batch.reset(ALL_WORLDS)
        return self._batch.observe()[0], {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        outcome = self._batch.step(np.asarray(action)[None])
        info = {"success": bool(outcome.success[0])}
        ends = (bool(outcome.terminated[0]), bool(outcome.truncated[0]))
        return outcome.obs[0], float(outcome.reward[0]), *ends, info
