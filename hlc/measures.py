"""Measures of a task over seeded episodes of one policy, with 95 % intervals."""

from __future__ import annotations

from typing import Any

import torch

from hlc.config import PlayConfig
from hlc.parent import Parent, SimulationConfig
from hlc.rollouts import (
    Decide,
    Episodes,
    distance_curve,
    episodes,
    falls,
    final_distances,
    returns,
    successes,
    survival,
    times_to_goal,
)
from pretrain.evaluation.intervals import interval, rate_interval, share_interval
from pretrain.motion.clip import control_steps

SUMMARY = (  # the measures of `summary` that are means
    "return",
    "success",
    "time_to_goal",
    "final_distance",
    "survival",
    "falls_per_minute",
)


def count_decisions(seconds: float, llc_steps: int) -> int:
    """Decisions of `llc_steps` control steps each in `seconds`, rounded up."""
    return -(-control_steps(seconds) // llc_steps)


def count_control_steps(seconds: float, llc_steps: int) -> int:
    """Control steps in `seconds`, rounded up to whole decisions of `llc_steps` each."""
    return count_decisions(seconds, llc_steps) * llc_steps


def play(
    decide: Decide, parent: Parent, cfg: PlayConfig, *, num_episodes: int, seed: int
) -> tuple[Episodes, int]:
    """The episodes that `decide` plays, and the number of broken worlds. A seed fixes starts, goal
    times and goal draws, whatever `decide`."""
    starts, goals = (torch.Generator().manual_seed(seed + i) for i in range(2))
    length = count_control_steps(cfg.episode_length, cfg.llc_steps)
    task = cfg.chosen_task()
    simulated = SimulationConfig(length, cfg.engine, cfg.threads)
    env = parent.simulation(num_episodes, task.scene(), simulated, starts)
    played = episodes(decide, parent.skills, env, task, llc_steps=cfg.llc_steps, rng=goals)
    return played, env.num_broken


def measure(decide: Decide, parent: Parent, cfg: PlayConfig, num_episodes: int) -> dict[str, Any]:
    """The summary of `num_episodes` episodes with the seed of the evaluation."""
    played, broken = play(decide, parent, cfg, num_episodes=num_episodes, seed=cfg.eval.seed)
    return {**summary(played, cfg.llc_steps), "broken_worlds": broken}


def summary(played: Episodes, llc_steps: int) -> dict[str, Any]:
    """Means with n and 95 % intervals, and the distance curve: one value per control step since the
    goal appeared.

    A goal met in its last step is a success; the time to goal, s, is that of the first step in
    which a goal is met. Goals never met are left out."""
    curve, rows = distance_curve(played)
    fallen, minutes = falls(played)
    return {
        "return": interval(returns(played, llc_steps)),
        "success": share_interval(successes(played)),
        "time_to_goal": interval(times_to_goal(played)),
        "final_distance": interval(final_distances(played)),
        "survival": interval(survival(played)),
        "falls_per_minute": rate_interval(fallen, minutes, played.reward.shape[1]),
        "curve": [round(x, 4) for x in curve.tolist()],
        "curve_rows": rows.tolist(),
    }
