"""Builds a task's worlds: characters over published skills, with goals."""

from __future__ import annotations

from torch import Generator

from hlc.config import HlcConfig
from hlc.goals import Goals
from hlc.measures import count_control_steps
from hlc.parent import Parent, SimulationConfig
from hlc.task_env import DecisionConfig, TaskEnv


def make_worlds(
    cfg: HlcConfig, parent: Parent, num_envs: int, *, starts: Generator, goals: Generator
) -> TaskEnv:
    """`num_envs` worlds of `cfg.task`, with a generator each for the starts and for the goals."""
    task = cfg.chosen_task()
    length = count_control_steps(cfg.episode_length, cfg.llc_steps)
    return TaskEnv(
        parent.simulation(
            num_envs, task.scene(), SimulationConfig(length, cfg.engine, cfg.threads), starts
        ),
        parent.skills,
        task,
        Goals(task, num_envs, cfg.llc_steps, goals),
        DecisionConfig(
            llc_steps=cfg.llc_steps,
            discount=cfg.ppo.gamma if cfg.shaping == "potential" else None,
        ),
    )
