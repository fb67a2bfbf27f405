"""Play a task by planning over published skills, without training, compared with random skills and
the best fixed one on the same episodes.

python -m hlc.plan task=reach skill=humanoid@1
"""

from __future__ import annotations

import sys
import time
from typing import Any

from hlc.baselines import best_fixed, make_planner, random_players
from hlc.config import PLAY_MODEL, PlayConfig
from hlc.measures import measure
from hlc.parent import Parent, open_parent
from hlc.rollouts import Decide
from pretrain.cli import command, program
from pretrain.help_text import describe_config
from skills_store.open import open_store
from skills_store.runtime.onnx_session import Array

COLUMNS = {  # of the table: measure -> heading and format
    "return": ("return", "{:.2f}"),
    "success": ("success", "{:.3f}"),
    "time_to_goal": ("s to goal", "{:.2f}"),
    "final_distance": ("final {unit}", "{:.2f}"),
    "falls_per_minute": ("falls/min", "{:.2f}"),
}


class Stopwatch:
    """Wraps a player and measures its decisions per second, over all characters."""

    def __init__(self, decide: Decide):
        self._decide = decide
        self._decisions = 0
        self._seconds = 0.0

    def __call__(self, state: Array, goal: Array) -> Array:
        began = time.perf_counter()
        z = self._decide(state, goal)
        self._seconds += time.perf_counter() - began
        self._decisions += len(state)
        return z

    @property
    def rate(self) -> float:
        """Decisions per second."""
        return self._decisions / max(self._seconds, 1e-9)


def run(cfg: PlayConfig) -> int:
    store = open_store(cfg.store)
    parent = open_parent(store, cfg.skill)
    n = cfg.plan.episodes
    planner = Stopwatch(make_planner(parent, cfg, n, seed=cfg.eval.seed))
    players: dict[str, Decide] = {"planner": planner}
    for name, player in random_players(parent, cfg, n).items():
        players[f"random ({name})"] = player
    if fixed := best_fixed(parent, cfg, n):
        players[f"fixed z ({fixed[0]})"] = fixed[1]
    print(f"{cfg.task} on {parent.version.ref}, {n} episodes of {cfg.episode_length:g} s")
    print(plan_table(players, parent, cfg))
    rate = cfg.llc_steps * planner.rate * parent.character.control_dt
    print(f"planner: {planner.rate:.1f} decisions/s, {rate:.1f} characters in real time")
    return 0


def plan_table(players: dict[str, Decide], parent: Parent, cfg: PlayConfig) -> str:
    """A row for each of `players`: means and the half widths of their 95 % intervals."""
    unit = cfg.chosen_task().distance_unit
    headings = "".join(f"{heading.format(unit=unit):>16}" for heading, _ in COLUMNS.values())
    lines = [f"{'':<28}{headings}"]
    for name, decide in players.items():
        measures = measure(decide, parent, cfg, cfg.plan.episodes)
        cells = [describe_interval(measures[key], form) for key, (_, form) in COLUMNS.items()]
        lines.append(f"{name:<28}{''.join(f'{cell:>16}' for cell in cells)}")
    return "\n".join(lines)


def describe_interval(estimate: dict[str, Any], form: str) -> str:
    """Mean and half width of an interval; "-" where there is nothing to take a mean of."""
    if estimate["mean"] is None:
        return "-"
    mean = form.format(estimate["mean"])
    if estimate["interval"] is None:  # of a single episode
        return mean
    low, high = estimate["interval"]
    return f"{mean} +-{form.format((high - low) / 2)}"


def main(arguments: list[str]) -> int:
    return command(run, PLAY_MODEL, "hlc.plan_conf", arguments)


def describe() -> str:
    return describe_config(PLAY_MODEL, "hlc.plan_conf", __doc__, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(program(main, describe))
