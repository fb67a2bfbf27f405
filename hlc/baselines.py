"""Baselines without training: random skills, the one skill with the highest return, and the
planner."""

from __future__ import annotations

import numpy as np
import torch

from hlc.config import PlayConfig
from hlc.measures import count_decisions, play
from hlc.parent import Parent
from hlc.planner import Planner
from hlc.rollouts import Decide, RandomSkills, returns
from skills_store.runtime.onnx_session import Array

# Offsets to the evaluation's seed, one per draw. Starts and goals have 0 and 1.
RANDOM_SEED = 2
CHOICE_SEED = 3
PLAN_SEED = 5


class FixedSkills:
    """Every character keeps its row of z (E, D), whatever its goal."""

    def __init__(self, z: Array):
        self._z = z

    def __call__(self, state: Array, goal: Array) -> Array:
        return self._z


def random_players(parent: Parent, cfg: PlayConfig, num_episodes: int) -> dict[str, Decide]:
    """Skills redrawn at each decision, and skills held for some seconds."""
    dim = parent.skills.latent_dim
    spans = {"redrawn": (0.0, 0.0), "held": (cfg.eval.random_time_min, cfg.eval.random_time_max)}
    players: dict[str, Decide] = {}
    for name, span in spans.items():
        shortest, longest = (max(1, count_decisions(t, cfg.llc_steps)) for t in span)
        rng = torch.Generator().manual_seed(cfg.eval.seed + RANDOM_SEED)
        players[name] = RandomSkills(num_episodes, dim, shortest, longest, rng)
    return players


def best_fixed(parent: Parent, cfg: PlayConfig, num_episodes: int) -> tuple[str, Decide] | None:
    """The clip whose latent, held for whole episodes, has the highest return, and its player; None
    for a library without latents of clips.

    The choice takes `eval.trials` episodes per clip, other than the evaluation's; with 10, reach
    got a running clip."""
    clips = parent.version.manifest.latent.clips
    if not clips:
        return None
    latents = np.array(list(clips.values()), np.float32)
    trials = cfg.eval.trials
    played, _ = play(
        FixedSkills(latents.repeat(trials, 0)),
        parent,
        cfg,
        num_episodes=trials * len(latents),
        seed=cfg.eval.seed + CHOICE_SEED,
    )
    best = int(returns(played, cfg.llc_steps).view(len(latents), trials).mean(1).argmax())
    return list(clips)[best], FixedSkills(latents[best : best + 1].repeat(num_episodes, 0))


def make_planner(parent: Parent, cfg: PlayConfig, num_episodes: int, *, seed: int) -> Planner:
    """A planner for `num_episodes` characters and their copies."""
    worlds = num_episodes * cfg.plan.candidates
    task = cfg.chosen_task()
    backend = parent.backend(worlds, task.scene(), cfg.engine, cfg.threads)
    rng = torch.Generator().manual_seed(seed + PLAN_SEED)
    return Planner(parent, task, backend, cfg.plan, rng=rng)
