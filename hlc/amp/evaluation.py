"""Evaluates an AMP policy with a controller's measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator
from torch.nn import Module

from hlc.amp.config import DECISION, AmpConfig
from hlc.measures import count_control_steps, summary
from hlc.nets import observation
from hlc.parent import Parent, SimulationConfig
from hlc.rollouts import episodes
from hlc.tasks.task import Task, goal_width
from pretrain.characters.state import unflatten
from pretrain.sim.env import ActionScale
from skills_store.runtime.onnx_session import Array


@dataclass(frozen=True)
class GoalPolicy:
    """Joint targets for states and goals. `episodes` passes the goal in place of z, at every
    control step."""

    policy: Module
    action_scale: ActionScale
    task: Task
    latent_dim: int  # of the goal

    @torch.no_grad()
    def act(self, state: Array, z: Array) -> Array:
        """(B, S), goals (B, G) -> joint targets (B, J) rad: the policy's mean."""
        states = unflatten(torch.from_numpy(state))
        mean = self.policy(observation(self.task, states, torch.from_numpy(z)))
        return self.action_scale.target(mean).numpy()


def evaluate(cfg: AmpConfig, parent: Parent, policy: Module) -> dict[str, Any]:
    """The summary of `cfg.eval.episodes` episodes. Returns are sums over decisions of `DECISION`
    control steps."""
    task = cfg.chosen_task()
    starts, goals = (Generator().manual_seed(cfg.eval.seed + i) for i in range(2))
    length = count_control_steps(cfg.episode_length, DECISION)
    simulated = SimulationConfig(length, cfg.engine, cfg.threads)
    env = parent.simulation(cfg.eval.episodes, task.scene(), simulated, starts)
    scale = ActionScale.from_library(parent.clips)
    actor = GoalPolicy(policy, scale, task, goal_width(task))
    played = episodes(lambda state, goal: goal, actor, env, task, llc_steps=1, rng=goals)
    return {**summary(played, DECISION), "broken_worlds": env.num_broken}
