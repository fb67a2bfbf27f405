"""The card of a published controller: returns, success and falls, compared with random skills, the
best fixed skill on the same episodes and, with `planner=N`, the planner on N others.

python -m hlc.evaluate controller=reach@latest
python -m hlc.evaluate controller=reach@latest reach.goal_time_min=5 reach.goal_time_max=5

keys:
  controller=reach@latest   reference of the controller; may stand without `controller=`
  store=                    skill store; default $REPERTOIRE_STORE
  episodes=512              episodes of each policy
  planner=0                 episodes of the planner; 0 leaves it out, 32 take minutes
  seed=4321                 seed of all random draws
  json=false                print one JSON object
  TASK.KEY=VALUE            a parameter of the controller's task, in place of that of its training
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from hlc.baselines import best_fixed, make_planner, random_players
from hlc.config import CONFIG_MODEL, HlcConfig
from hlc.measures import SUMMARY, count_decisions, measure
from hlc.parent import Parent, open_parent
from hlc.rollouts import Decide
from hlc.tasks import TASKS
from hlc.tasks.base import GoalTask
from hlc.tasks.parameters import make_task
from hlc.tasks.task import Task
from pretrain.cli import program
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.options import name_reference, parse_flag, parse_int, parse_options
from pretrain.overrides import ConfigError
from skills_store.errors import StoreError, WrongKind
from skills_store.open import open_store
from skills_store.runtime.library import Controller
from skills_store.version import Version

PARENT = "parent"  # lineage key of the skill library's configuration
MACHINE = "machine"  # lineage key of a state machine


@dataclass(frozen=True)
class Baselines:
    """The measures of each baseline, on the controller's episodes; the planner's are others."""

    random: dict[str, dict[str, Any]]  # "redrawn" and "held"
    best_random: str  # key of the highest return in `random`
    fixed_skill: str | None  # the clip whose own latent has the highest return
    others: dict[str, dict[str, Any]]  # "fixed" and "planner", where played

    @property
    def compared(self) -> dict[str, dict[str, Any]]:
        """Measures by baseline; of the random ones, the better."""
        return {"random": self.random[self.best_random], **self.others}


def measure_baselines(parent: Parent, cfg: HlcConfig, planner_episodes: int) -> Baselines:
    n = cfg.eval.episodes
    players = random_players(parent, cfg, n)
    random = {name: measure(player, parent, cfg, n) for name, player in players.items()}
    best = max(random, key=lambda name: random[name]["return"]["mean"])
    fixed = best_fixed(parent, cfg, n)
    others: dict[str, dict[str, Any]] = {}
    if fixed:
        others["fixed"] = measure(fixed[1], parent, cfg, n)
    if planner_episodes:
        planner = make_planner(parent, cfg, planner_episodes, seed=cfg.eval.seed)
        others["planner"] = measure(planner, parent, cfg, planner_episodes)
    return Baselines(random, best, fixed and fixed[0], others)


def task_card(
    decide: Decide, parent: Parent, cfg: HlcConfig, planner_episodes: int = 0
) -> dict[str, Any]:
    """Measures of `decide` and of the baselines, as plain JSON: the better of two random ones, the
    best clip's latent held, and the planner over `planner_episodes`.

    All but the planner share the same starts, goal times and goal draws (a goal is relative to the
    character, so its world position differs); the planner's are other draws. Distances are over
    standing characters, and None for a task without a distance; a fall lowers `survival` and the
    return."""
    controller = measure(decide, parent, cfg, cfg.eval.episodes)
    baselines = measure_baselines(parent, cfg, planner_episodes)
    compared = baselines.compared
    mean_return = controller["return"]["mean"]
    decisions = count_decisions(cfg.episode_length, cfg.llc_steps)
    means = {key: controller[key]["mean"] for key in SUMMARY}
    for name, measures in compared.items():
        means |= {f"{key}_{name}": measures[key]["mean"] for key in SUMMARY}
    return {
        "task": cfg.task,
        "distance_unit": cfg.chosen_task().distance_unit,
        **means,
        "return_per_decision": mean_return / decisions,
        "return_ratio": mean_return / max(compared["random"]["return"]["mean"], 1e-9),
        "distance_curve": {
            "seconds_per_step": 1 / CONTROL_RATE,
            "controller": controller["curve"],
            "random": compared["random"]["curve"],
        },
        "goal_ranges": cfg.chosen_task().goal_ranges(),
        "detail": {
            "controller": controller,
            "baseline": baselines.best_random,
            "random": baselines.random,
            "fixed_skill": baselines.fixed_skill,
            **baselines.others,
            "llc_steps": cfg.llc_steps,
            "seed": cfg.eval.seed,
        },
    }


ROWS = {  # of the table: measure -> heading and format
    "return": ("return", "{:.2f}"),
    "success": ("success", "{:.2f}"),
    "time_to_goal": ("time to goal", "{:.2f} s"),
    "final_distance": ("final distance", "{:.3f} {unit}"),
    "survival": ("survival", "{:.2f}"),
    "falls_per_minute": ("falls a minute", "{:.2f}"),
}


def table(card: dict[str, Any]) -> str:
    """The card as text."""
    titles = {
        "": "controller",
        "_random": f"random ({card['detail']['baseline']})",
        "_fixed": f"fixed ({card['detail']['fixed_skill']})",
        "_planner": "planner",
    }
    columns = {suffix: title for suffix, title in titles.items() if f"return{suffix}" in card}
    rows = [("", list(columns.values()))]
    unit = card["distance_unit"]
    for key, (heading, form) in ROWS.items():
        cells = [_cell(card[f"{key}{suffix}"], form, unit) for suffix in columns]
        rows.append((heading, cells))
    curves = card["distance_curve"]
    for second in (0.5, 1, 1.5, 2, 2.5, 3):
        at = control_steps(second) - 1
        curve = [curves[player] for player in ("controller", "random")]
        if at < max(map(len, curve)):
            distances = [row[at] if at < len(row) else None for row in curve]
            cells = [_cell(x, ROWS["final_distance"][1], unit) for x in distances]
            rows.append((f"  distance at {second:g} s", cells))
    width = max(20, *(len(title) + 2 for title in columns.values()))
    lines = [f"{name:<20}" + "".join(f"{cell:>{width}}" for cell in cells) for name, cells in rows]
    return "\n".join([*lines, f"{'return ratio':<20}{card['return_ratio']:>{width}.2f}"])


def _cell(x: float | None, form: str, unit: str) -> str:
    return "-" if x is None else form.format(x, unit=unit)


def trained_config(version: Version) -> HlcConfig:
    """The configuration of a controller's training. Raises ValueError for a state machine, which
    has none."""
    config = _read_lineage(version)
    # defaults of other tasks may have been others when it was trained
    unread = {PARENT, *TASKS} - {config.get("task")}
    return CONFIG_MODEL.model_validate({key: x for key, x in config.items() if key not in unread})


def trained_task(label: str, version: Version, changes: Mapping[str, Any]) -> Task:
    """The task that a controller was trained on, with `changes` of its parameters. Other keys of
    the training are not read, so they may be those of another release. Raises ValueError for a
    state machine and an unknown task, and ConfigError as `make_task`."""
    config = _read_lineage(version)
    name = config.get("task")
    if name not in TASKS:
        raise ValueError(f"{version.ref} is of task {name!r}, expected one of {', '.join(TASKS)}")
    return make_task(label, name, config.get(name, {}) | changes)


def _read_lineage(version: Version) -> Mapping[str, Any]:
    config = version.manifest.lineage.config
    if MACHINE in config:
        raise ValueError(f"{version.ref} is a state machine, expected the controller of a task")
    return config


def change_task(cfg: HlcConfig, changes: Sequence[str]) -> HlcConfig:
    """`cfg` with `TASK.KEY=VALUE` changes of its task's parameters, values in YAML. Raises
    ConfigError for another task, an unknown parameter and an invalid value."""
    task = cfg.chosen_task()
    assert isinstance(task, GoalTask)
    parameters = task.model_dump()
    for change in changes:
        name, _, setting = change.partition(".")
        key, _, value = setting.partition("=")
        if name != cfg.task:
            raise ConfigError(f"{change}: the controller's task is {cfg.task}")
        try:
            parameters[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise ConfigError(f"{change}: {value!r} is no value in YAML") from None
    changed = make_task(cfg.task, cfg.task, parameters)
    return cfg.model_copy(update={cfg.task: changed})


def main(arguments: list[str]) -> int:
    defaults = {
        "controller": "reach@latest",
        "store": "",
        "episodes": "512",
        "planner": "0",
        "seed": "4321",
        "json": "false",
    }
    try:
        arguments = name_reference(arguments, "controller")
        of_task = [argument for argument in arguments if "." in argument.partition("=")[0]]
        options = parse_options([x for x in arguments if x not in of_task], defaults)
        as_json = parse_flag(options, "json")
        planner = parse_int(options, "planner", 0)
        store = open_store(options["store"])
        version = store.resolve(options["controller"])
        if version.manifest.kind != "controller":
            raise WrongKind(version.ref, version.manifest.kind, "controller")
        parent = open_parent(store, store.parent(version.manifest).pinned)
        controller = Controller.open(store, version, library=parent.skills)
        trained = change_task(trained_config(version), of_task)
        changed = {
            "episodes": parse_int(options, "episodes", 1),
            "seed": parse_int(options, "seed", 0),
        }
        cfg = trained.model_copy(update={"eval": trained.eval.model_copy(update=changed)})
        card = task_card(controller.decide, parent, cfg, planner)
    except (StoreError, ValueError, RuntimeError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(card, indent=2) if as_json else f"{version.ref}\n{table(card)}")
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
