"""SkillVectorEnv: many characters with a task in one batch, as `gymnasium.vector.VectorEnv`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hlc.gym.batch import Bools, DecisionResult, Floats, TaskBatch

Stepped = tuple[Floats, NDArray[np.float64], Bools, Bools, dict[str, Any]]


class SkillVectorEnv(VectorEnv[Floats, Floats, NDArray[Any]]):
    """`skill` and `settings` as in TaskBatch; `autoreset_mode` as gymnasium defines it.

    NEXT_STEP resets a world in the step after its end, which ignores the action and has the reward
    0. SAME_STEP resets it at once, and info has `final_obs` and `final_info`. DISABLED leaves it to
    `reset(options={"reset_mask": mask})`. docs/tasks.md lists the mode each library needs."""

    def __init__(
        self,
        num_envs: int,
        task: str,
        skill: str = "humanoid@latest",
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ):
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset_mode}
        self._batch = TaskBatch(num_envs, task, skill, settings)
        self.single_observation_space = self._batch.observation_space
        self.single_action_space = self._batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all_worlds = np.ones(num_envs, np.bool_)
        self._ended = ~self._all_worlds  # and not yet reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, dict[str, Any]]:
        """All worlds, or those of `options["reset_mask"]` (N,) bool."""
        super().reset(seed=seed)
        if seed is not None:
            self._batch.seed(seed)
        rows = self._mask(options)
        self._batch.reset(rows)
        self._ended = self._ended & ~rows
        return self._batch.observe(), {}

    def step(self, actions: Floats) -> Stepped:
        """Raises ValueError where autoreset is disabled and a world that has ended was not
        reset."""
        if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
            world = int(self._ended.argmax())
            raise ValueError(
                f"world {world} has ended; expected reset(options={{'reset_mask': mask}}) first"
            )
        outcome = self._batch.step(self._ignore_ended(actions))
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            return self._begin_ended(outcome)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            return self._reset_at_once(outcome)
        self._ended = outcome.terminated | outcome.truncated
        return (
            outcome.obs,
            outcome.reward,
            outcome.terminated,
            outcome.truncated,
            _info(outcome, self._all_worlds),
        )

    def _ignore_ended(self, actions: Floats) -> Floats:
        """`actions` (N, D), those of worlds that this step resets replaced by an arbitrary valid
        one."""
        if np.shape(actions) != self.action_space.shape or not self._ended.any():
            return actions
        return np.where(self._ended[:, None], np.float32(1.0), actions)

    def _begin_ended(self, outcome: DecisionResult) -> Stepped:
        """Reset worlds that ended in the previous step; drop this step's outcome for them."""
        began = self._ended
        obs = outcome.obs
        if began.any():
            self._batch.reset(began)
            obs = self._batch.observe()
        terminated = outcome.terminated & ~began
        truncated = outcome.truncated & ~began
        self._ended = terminated | truncated
        return obs, outcome.reward * ~began, terminated, truncated, _info(outcome, ~began)

    def _reset_at_once(self, outcome: DecisionResult) -> Stepped:
        ended = outcome.terminated | outcome.truncated
        if not ended.any():
            info = _info(outcome, self._all_worlds)
            return outcome.obs, outcome.reward, outcome.terminated, outcome.truncated, info
        self._batch.reset(ended)
        info = _info(outcome, ~ended)
        info |= {"final_obs": outcome.obs, "_final_obs": ended}
        info |= {"final_info": _info(outcome, ended), "_final_info": ended}
        return self._batch.observe(), outcome.reward, outcome.terminated, outcome.truncated, info

    def _mask(self, options: dict[str, Any] | None) -> Bools:
        mask = (options or {}).get("reset_mask")
        if mask is None:
            return self._all_worlds
        rows = np.asarray(mask)
        if rows.shape != (self.num_envs,) or rows.dtype != np.bool_:
            raise ValueError(
                f"reset_mask has the shape {rows.shape} of {rows.dtype}, "
                f"expected ({self.num_envs},) of bool"
            )
        return rows


def _info(outcome: DecisionResult, rows: Bools) -> dict[str, Any]:
    """Infos of several worlds in gymnasium's form: an array and the mask of its rows."""
    return {"success": outcome.success & rows, "_success": rows}
