"""Sb3VecEnv: a task's worlds as a `VecEnv`. Stable-Baselines3 does not take gymnasium's vector
environments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from hlc.gym.batch import Floats
from hlc.gym.vector_env import SkillVectorEnv

Indices = None | int | Iterable[int]


class Sb3VecEnv(VecEnv):
    """Wraps `envs` in the mode SameStep: `final_obs` becomes `terminal_observation`, and a timeout
    sets `TimeLimit.truncated`."""

    def __init__(self, envs: SkillVectorEnv):
        if envs.autoreset_mode != AutoresetMode.SAME_STEP:
            mode = envs.autoreset_mode.value
            raise ValueError(f"autoreset_mode is {mode!r}, expected 'SameStep'")
        self._envs = envs
        self._actions = np.zeros(0, np.float32)
        self._seed: int | None = None
        self.render_mode = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Takes effect at the next reset."""
        self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> Floats:
        obs, _ = self._envs.reset(seed=self._seed)
        self._seed = None
        return obs

    def step_async(self, actions: Floats) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Floats, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        obs, reward, terminated, truncated, info = self._envs.step(self._actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = []
        for world in range(self.num_envs):
            ended = bool(done[world])
            step_info = info["final_info"] if ended else info
            infos.append({"is_success": bool(step_info["success"][world])})
            if ended:
                infos[-1]["terminal_observation"] = info["final_obs"][world]
                infos[-1]["TimeLimit.truncated"] = bool(truncated[world] & ~terminated[world])
        return obs, reward.astype(np.float32), done, infos

    def close(self) -> None:
        self._envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        value = self.render_mode if attr_name == "render_mode" else getattr(self._envs, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        raise NotImplementedError(f"{attr_name}: the worlds share their attributes")

    def env_method(
        self, method_name: str, *args: Any, indices: Indices = None, **named: Any
    ) -> list[Any]:
        raise NotImplementedError(f"{method_name}: the worlds are one environment")

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
