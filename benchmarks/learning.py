"""Learning curves: the card of each run's milestones against samples and seconds, median and range
over the runs.

python -m benchmarks.learning runs/humanoid-1a2b3c4d runs/humanoid-5e6f7a8b out=learning/

keys:
  out=           folder of tables and plots; default: below the folder of cards
  episodes=256   episodes of each card
  quick=false    only falls, time on clip and switches, with few worlds
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
from pydantic import ValidationError

mpl.use("Agg")  # needs no display
import matplotlib.pyplot as plt

from pretrain.assembly import build_training
from pretrain.cli import program
from pretrain.config import PretrainConfig
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.skill_card import quick_card, skill_card
from pretrain.evaluation.table import value_at
from pretrain.options import parse_flag, parse_int, parse_options, split_arguments
from pretrain.publishing.publish import make_candidate, take_trained
from pretrain.rl import checkpoint
from pretrain.rl.run_folder import write_atomically
from pretrain.train import find_run_folder
from pretrain.training_data import TrainingData, load_training_data
from skills_store import places
from skills_store.errors import StoreError
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store

MEASURES = {  # column of a row: its key in the card
    "falls_own": "falls_per_minute.own",
    "falls_random": "falls_per_minute.random",
    "time_on_clip": "time_on_clip.mean",
    "time_on_clip_least": "time_on_clip.least",
    "switch_success": "switch_success.mean",
    "information": "information.nats",
    "distinguishable": "information.distinguishable",
    "survival": "survival",
    "coverage": "coverage",
    "fidelity": "fidelity",
    "jerk": "jerk",
    "speed": "speed",
    "gets_up": "robustness.gets_up",
    "push_500_newton": "robustness.push_500_newton",
}
HEADLINE = {name: MEASURES[name] for name in list(MEASURES)[:5]}  # what the quick card has
Row = dict[str, Any]  # numbers; None where there was nothing to measure


@dataclass(frozen=True)
class Measurement:
    """The measures of a milestone, and the file of a run's folder that stores them."""

    file: str
    columns: Mapping[str, str]  # column of a row: its key in the card
    measure: Callable[[SkillLibrary, TrainingData, PretrainConfig], dict[str, Any]]  # a card


def whole_card(episodes: int) -> Measurement:
    def measure(skills: SkillLibrary, data: TrainingData, cfg: PretrainConfig) -> dict[str, Any]:
        conditions = Conditions(episodes, cfg.eval.seed, engine=cfg.engine)
        return skill_card(skills, data, conditions)

    return Measurement(f"cards-{episodes}.jsonl", MEASURES, measure)


def headline() -> Measurement:
    """The first three measures of the card, with few worlds."""

    def measure(skills: SkillLibrary, data: TrainingData, cfg: PretrainConfig) -> dict[str, Any]:
        return quick_card(skills, data, cfg.eval.seed, cfg.engine)

    return Measurement("headline.jsonl", HEADLINE, measure)


def measure_milestones(folder: Path, measurement: Measurement) -> list[Row]:
    """One row a milestone; milestones already in the file are not measured again."""
    cfg = PretrainConfig.model_validate_json((folder / "config.json").read_text(encoding="utf-8"))
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    if folder.resolve().name != find_run_folder(cfg, data).name:
        raise ValueError(
            f"{folder}: its recipe {cfg.motions!r}, a clip, its config.json or its name has "
            "changed since the run; restore it to measure the run"
        )
    kept = folder / measurement.file
    rows = read_rows(kept, measurement.columns)
    training = build_training(cfg, data)
    for file in sorted((folder / "milestones").glob("*.pt")):
        milestone = checkpoint.load(file)
        if milestone["samples"] in {row["samples"] for row in rows}:
            continue
        for name, weights in milestone["nets"].items():
            training.nets.modules()[name].load_state_dict(weights)
        with TemporaryDirectory() as scratch:
            skills = make_candidate(cfg, data, take_trained(training), Store(scratch)).skills
            card = measurement.measure(skills, data, cfg)
        row = {"samples": milestone["samples"], "seconds": milestone["seconds"]}
        row |= {name: value_at(card, path) for name, path in measurement.columns.items()}
        rows = sorted([*rows, row], key=lambda row: row["samples"])
        write_atomically(kept, "".join(json.dumps(row) + "\n" for row in rows))
        line = "  ".join(f"{key} {value}" for key, value in row.items())
        print(f"{folder.name}: {line}", flush=True)
    return rows


def read_rows(file: Path, columns: Mapping[str, str]) -> list[Row]:
    """The rows of `file`, if it exists, without those that lack a column."""
    if not file.exists():
        return []
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row.keys() >= columns.keys()]


def table(runs: Sequence[Sequence[Row]], measures: Collection[str]) -> str:
    """Median (lowest to highest) of `measures` over the runs, one line for each milestone that all
    of them have."""
    lines = [
        "| samples | seconds | " + " | ".join(measures) + " |",
        "|---" * (2 + len(measures)) + "|",
    ]
    for together in in_common(runs):
        cells = [f"{together[0]['samples'] / 1e6:.1f} M"]
        for name in ("seconds", *measures):
            values = known(together, name)
            text = (
                f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})" if values else "-"
            )
            cells.append(text)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def in_common(runs: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """For each number of samples at which all runs have a milestone, the rows of all runs."""
    after = [{row["samples"]: row for row in rows} for rows in runs]
    return [
        [rows[samples] for rows in after]
        for samples in sorted(set.intersection(*(set(rows) for rows in after)))
    ]


def known(rows: Sequence[Row], name: str) -> list[float]:
    """The values of the rows that have one; `gets_up` has none where no world fell."""
    return [row[name] for row in rows if row[name] is not None]


def draw(runs: Sequence[Sequence[Row]], measures: Collection[str], file: Path) -> None:
    """Each of `measures` against samples and against seconds: a line a run, and their median."""
    figure, panels = plt.subplots(len(measures), 2, figsize=(10, 2.2 * len(measures)), sharex="col")
    for axes, name in zip(panels, measures, strict=True):
        for panel, along in zip(axes, ("samples", "seconds"), strict=True):
            for rows in runs:
                panel.plot(
                    [row[along] for row in rows],
                    [row[name] for row in rows],
                    lw=0.8,
                    color="#4878a8",
                )
            together = [rows for rows in in_common(runs) if known(rows, name)]
            middle = [median(row[along] for row in rows) for rows in together]
            panel.plot(middle, [median(known(rows, name)) for rows in together], color="black")
        axes[0].set_ylabel(name)
    panels[-1, 0].set_xlabel("samples")
    panels[-1, 1].set_xlabel("seconds")
    figure.savefig(file, dpi=110, bbox_inches="tight")


def main(arguments: list[str]) -> int:
    positional, pairs = split_arguments(arguments)
    folders = [Path(argument) for argument in positional]
    if not folders or not all((folder / "milestones").is_dir() for folder in folders):
        print(
            "name the folders of one or more runs of pretrain.train, as runs/humanoid-1a2b3c4d",
            file=sys.stderr,
        )
        return 2
    try:
        defaults = {
            "out": str(places.cards() / "learning"),
            "episodes": "256",
            "quick": "false",
        }
        options = parse_options(pairs, defaults)
        card = whole_card(parse_int(options, "episodes", 2))
        measurement = headline() if parse_flag(options, "quick") else card
        out = Path(options["out"])
        out.mkdir(parents=True, exist_ok=True)
        runs = [measure_milestones(folder, measurement) for folder in folders]
        if not in_common(runs):
            raise ValueError(
                "there is no number of samples at which all of these runs have a milestone"
            )
    except ValidationError as error:
        strange = ", ".join(".".join(map(str, e["loc"])) for e in error.errors())
        print(
            f"a run of another version, whose config.json has {strange}: measure it with that "
            "version",
            file=sys.stderr,
        )
        return 2
    except (StoreError, ValueError, KeyError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    lines = table(runs, measurement.columns)
    (out / "learning.md").write_text(lines + "\n", encoding="utf-8")
    draw(runs, measurement.columns, out / "learning.png")
    print(lines)
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
