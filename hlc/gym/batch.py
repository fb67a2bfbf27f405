"""TaskBatch: the worlds of a task as numpy arrays, used by both environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pydantic import ValidationError

from hlc.config import CONFIG_MODEL, HlcConfig
from hlc.parent import open_parent
from hlc.tasks import TASKS
from hlc.tasks.parameters import make_task
from hlc.worlds import make_worlds
from pretrain.overrides import ConfigError, describe_error
from pretrain.rl.rollout import Batch
from skills_store.open import open_store

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
# keys of the configuration that the worlds depend on; the others are for training a controller
WORLD_KEYS = ("llc_steps", "episode_length", "seed", "engine", "threads", "store")


@dataclass(frozen=True)
class DecisionResult:
    """The result of one decision, before any reset, (N, ...) each."""

    obs: Floats  # (N, O)
    reward: NDArray[np.float64]  # the mean task reward of its control steps, in [0, 1]
    terminated: Bools
    truncated: Bools
    success: Bools  # the goal is met, and the world has not failed


def make_config(task: str, settings: dict[str, Any]) -> HlcConfig:
    """The configuration of `task` with `settings`. Raises ConfigError for an invalid value, with
    the parameters that exist where it is one of the task's."""
    values = {"task": task} | settings
    if task in TASKS and task in settings:
        values[task] = make_task(task, task, settings[task])
    try:
        return CONFIG_MODEL.model_validate(values)
    except ValidationError as error:
        raise ConfigError("; ".join(map(describe_error, error.errors()))) from None


class TaskBatch:
    """N worlds. An observation is the heading-local proprioception, then the goal's features; an
    action is z, of any length but 0."""

    def __init__(self, num_envs: int, task: str, skill: str, settings: dict[str, Any]):
        """`settings` are WORLD_KEYS and the task's own group, as a mapping:
        `llc_steps=3`, `reach={"body": "head"}`. `seed` determines starts and goals; without it they
        differ between runs. Raises ValueError for any other key."""
        has_effect = (*WORLD_KEYS, task)
        for key in settings:
            if key not in has_effect:
                raise ValueError(f"{key} is no key of this environment: {', '.join(has_effect)}")
        cfg = make_config(task, {"skill": skill, "num_envs": num_envs} | settings)
        parent = open_parent(open_store(cfg.store), cfg.skill)
        self._starts = torch.Generator()
        self._goals = torch.Generator()
        if "seed" in settings:
            self.seed(cfg.seed)
        else:
            self._starts.seed()
            self._goals.seed()
        self.task = cfg.chosen_task()
        self.worlds = make_worlds(cfg, parent, num_envs, starts=self._starts, goals=self._goals)
        width = self.observe().shape[-1]
        self.observation_space = Box(-np.inf, np.inf, (width,), np.float32)
        self._width = (parent.skills.latent_dim,)
        self.action_space = Box(-1.0, 1.0, self._width, np.float32)

    def seed(self, seed: int) -> None:
        """Seed the starts and goals of later resets."""
        self._starts.manual_seed(seed)
        self._goals.manual_seed(seed + 1)

    def reset(self, rows: Bools) -> None:
        """Restart the episodes of the worlds in `rows` (N,)."""
        self.worlds.reset(torch.from_numpy(rows.nonzero()[0]))

    def observe(self) -> Floats:
        """(N, O)."""
        return _join(self.worlds.observe())

    def step(self, action: Floats) -> DecisionResult:
        """One decision of every world, (N, D). Raises ValueError for another shape, for a
        number that is not finite, and for an action of 0."""
        expected = (self.worlds.num_envs, *self._width)
        if np.shape(action) != expected:
            raise ValueError(f"action has the shape {np.shape(action)}, expected {expected}")
        if not np.isfinite(action).all():
            world = int((~np.isfinite(action)).any(-1).argmax())
            raise ValueError(f"action of world {world} is {action[world]}, expected finite numbers")
        if not np.any(action, -1).all():
            world = int((~np.any(action, -1)).argmax())
            raise ValueError(f"action of world {world} is 0, expected a direction on the sphere")
        step = self.worlds.step(torch.from_numpy(np.array(action, np.float32)))
        return DecisionResult(
            obs=_join(step.next_obs),
            reward=step.reward.double().numpy(),
            terminated=step.terminated.numpy(),
            truncated=step.truncated.numpy(),
            success=step.extras["success"].numpy(),
        )


def _join(batch: Batch) -> Floats:
    return torch.cat([batch["obs"], batch["goal"]], -1).numpy().copy()
