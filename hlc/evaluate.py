"""The card of a published controller: returns and distances, beside random skills on the same
seeds.

python -m hlc.evaluate controller=reach@latest

keys:
  controller=reach@latest   reference of the controller
  store=                    skill store; default $REPERTOIRE_STORE
  episodes=512              episodes of each policy
  seed=4321                 seed of all random draws
  json=false                print one JSON object
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from hlc.config import CONFIG_MODEL, HlcConfig
from hlc.parent import Parent, open_parent
from hlc.rollouts import (
    Decide,
    Episodes,
    RandomSkills,
    distance_curve,
    episodes,
    final_distances,
    returns,
    survival,
)
from pretrain.cli import parse_flag, parse_int, parse_options, program
from pretrain.evaluation.intervals import interval
from pretrain.motion.clip import CONTROL_RATE
from skills_store.errors import StoreError, WrongKind
from skills_store.manifest import Manifest
from skills_store.open import open_store
from skills_store.runtime.library import Controller

PARENT = "parent"  # where a controller's lineage keeps the configuration of its skill library


def whole_decisions(seconds: float, llc_steps: int) -> int:
    """Control steps in `seconds`, rounded up to whole decisions."""
    return -(-round(seconds * CONTROL_RATE) // llc_steps) * llc_steps


def task_card(decide: Decide, parent: Parent, cfg: HlcConfig) -> dict[str, Any]:
    """Measures of `decide` and of the better of two random baselines, as plain JSON.

    Every player meets the same starts, goal times and goal draws (a goal lies around the character,
    so its place in the world differs). Distances are of characters that stand; a fall shows in
    `survival` and in the return."""
    played = {
        name: _measured(player, parent, cfg)
        for name, player in {"controller": decide, **_baselines(parent, cfg)}.items()
    }
    own = played.pop("controller")
    best = max(played, key=lambda name: played[name]["return"]["mean"])
    random = played[best]
    return {
        "task": cfg.task,
        "return": own["return"]["mean"],
        "return_random": random["return"]["mean"],
        "return_ratio": own["return"]["mean"] / max(random["return"]["mean"], 1e-9),
        "final_distance": own["final_distance"]["mean"],
        "final_distance_random": random["final_distance"]["mean"],
        "survival": own["survival"]["mean"],
        "survival_random": random["survival"]["mean"],
        "distance_curve": {
            "seconds_per_step": 1 / CONTROL_RATE,
            "controller": own["curve"],
            "random": random["curve"],
        },
        "detail": {
            "controller": own,
            "baseline": best,
            "random": played,
            "llc_steps": cfg.llc_steps,
            "seed": cfg.eval.seed,
        },
    }


def _baselines(parent: Parent, cfg: HlcConfig) -> dict[str, Decide]:
    n = cfg.eval.episodes
    dim = parent.skills.latent_dim
    spans = {"redrawn": (0.0, 0.0), "held": (cfg.eval.random_time_min, cfg.eval.random_time_max)}
    players: dict[str, Decide] = {}
    for name, span in spans.items():
        shortest, longest = (
            max(1, whole_decisions(t, cfg.llc_steps) // cfg.llc_steps) for t in span
        )
        players[name] = RandomSkills(
            n, dim, shortest, longest, torch.Generator().manual_seed(cfg.eval.seed + 2)
        )
    return players


def _measured(decide: Decide, parent: Parent, cfg: HlcConfig) -> dict[str, Any]:
    starts, goals = (torch.Generator().manual_seed(cfg.eval.seed + i) for i in range(2))
    length = whole_decisions(cfg.episode_length, cfg.llc_steps)
    env = parent.simulation(
        cfg.eval.episodes, length, engine=cfg.engine, threads=cfg.threads, rng=starts
    )
    played = episodes(
        decide, parent.skills, env, cfg.chosen_task(), llc_steps=cfg.llc_steps, rng=goals
    )
    return {**summary(played, cfg.llc_steps), "broken_worlds": env.broken}


def summary(played: Episodes, llc_steps: int) -> dict[str, Any]:
    """Means with n and 95 % intervals, and the distance curve: one value per control step since the
    goal appeared."""
    curve, rows = distance_curve(played)
    return {
        "return": interval(returns(played, llc_steps)),
        "final_distance": interval(final_distances(played)),
        "survival": interval(survival(played)),
        "curve": [round(x, 4) for x in curve.tolist()],
        "curve_rows": rows.tolist(),
    }


def table(card: dict[str, Any]) -> str:
    """The card for people."""
    rows = [
        ("", "controller", f"random ({card['detail']['baseline']})"),
        ("return", *(f"{card[key]:.2f}" for key in ("return", "return_random"))),
        (
            "final distance",
            *(_metres(card[key]) for key in ("final_distance", "final_distance_random")),
        ),
        ("survival", *(f"{card[key]:.2f}" for key in ("survival", "survival_random"))),
    ]
    curves = card["distance_curve"]
    for second in (0, 0.5, 1, 1.5, 2, 2.5, 3):
        at = max(0, round(second * CONTROL_RATE) - 1)
        shown = [
            curves[who][at] if at < len(curves[who]) else None for who in ("controller", "random")
        ]
        rows.append((f"  distance at {second:g} s", *map(_metres, shown)))
    lines = [f"{name:<24}{own:>12}{random:>20}" for name, own, random in rows]
    return "\n".join([*lines, f"{'return ratio':<24}{card['return_ratio']:>12.2f}"])


def _metres(x: float | None) -> str:
    return "-" if x is None else f"{x:.3f} m"


def trained_config(manifest: Manifest) -> HlcConfig:
    """The configuration that a controller was trained with."""
    return CONFIG_MODEL.model_validate(
        {key: value for key, value in manifest.lineage.config.items() if key != PARENT}
    )


def main(arguments: list[str]) -> int:
    defaults = {
        "controller": "reach@latest",
        "store": "",
        "episodes": "512",
        "seed": "4321",
        "json": "false",
    }
    try:
        asked = parse_options(arguments, defaults)
        as_json = parse_flag(asked, "json")
        store = open_store(asked["store"])
        version = store.resolve(asked["controller"])
        if version.manifest.kind != "controller":
            raise WrongKind(version.ref, version.manifest.kind, "controller")
        parent = open_parent(store, store.parent(version.manifest).pinned)
        controller = Controller.open(store, version, library=parent.skills)
        trained = trained_config(version.manifest)
        changed = {"episodes": parse_int(asked, "episodes", 1), "seed": parse_int(asked, "seed", 0)}
        cfg = trained.model_copy(update={"eval": trained.eval.model_copy(update=changed)})
        card = task_card(controller.decide, parent, cfg)
    except (StoreError, ValueError, RuntimeError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(card, indent=2) if as_json else f"{version.ref}\n{table(card)}")
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
