"""Training on other clips with an unchanged preset: recipes drawn at random from a folder of clips,
each trained and measured.

python -m benchmarks.recipes takes/                           10 recipes of 5 clips each
python -m benchmarks.recipes takes/ count=3 preset=mobility samples=38000000

A recipe has clips that `python -m pretrain.motion check` judges good, each take once, and their
mirror images. The last line of the table is the median over the recipes.

keys:
  count=10           recipes
  clips=5            of each
  seed=0             of the draw; recipe 3 is the same for any `count`
  preset=locomotion  what is trained
  samples=19000000   of each
  only=              numbers of recipes, comma-separated; default: all of them
  out=               folder of recipes, runs and of the table; default: below the folder of cards
  threads=0          of each training; 0: all that the process may use

The same command skips finished runs and resumes an interrupted one. A run that fails is named on
stderr and makes the exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import yaml

from benchmarks.finished_run import train_and_measure
from benchmarks.learning import Row, known, whole_card
from pretrain.cli import program
from pretrain.motion.check import check
from pretrain.motion.files import find_files, list_motions
from pretrain.motion.verdict import GOOD
from pretrain.options import parse_int, parse_options, split_arguments
from pretrain.overrides import ConfigError
from skills_store import places
from skills_store.errors import StoreError
from skills_store.processors import count_processors

EPISODES = 256  # of a card
COLUMNS = (
    "survival",
    "time_on_clip",
    "time_on_clip_least",
    "falls_own",
    "falls_random",
    "switch_success",
    "coverage",
)


@dataclass(frozen=True)
class Plan:
    folder: Path  # of clips
    count: int
    clips: int
    seed: int
    preset: str
    samples: int
    only: tuple[int, ...]
    out: Path
    threads: int

    def recipe(self, number: int) -> Path:
        return self.out / "recipes" / f"{number}.yaml"

    def overrides(self, number: int) -> list[str]:
        """The configuration of one run."""
        return [
            f"preset={self.preset}",
            f"motions={self.recipe(number)}",
            f"name=recipe-{number}",
            f"samples={self.samples}",
            f"milestone_interval={self.samples}",
            f"threads={self.threads}",
            f"runs={self.out / 'runs'}",
            "publish=false",
        ]


def find_good_takes(folder: Path) -> list[Path]:
    """The clips below `folder` that check judges good, the first one of each file name."""
    takes: dict[str, Path] = {}
    verdicts = check([str(folder)], "humanoid", count_processors())
    for file, verdict in zip(find_files(str(folder)), verdicts, strict=True):
        if verdict.verdict == GOOD:
            takes.setdefault(file.stem, file)
    return list(takes.values())


def draw_recipe(takes: Sequence[Path], clips: int, rng: np.random.Generator) -> list[Path]:
    """`clips` different ones of `takes`, in their order."""
    chosen = rng.choice(len(takes), size=clips, replace=False)
    return [takes[index] for index in sorted(chosen)]


def write_recipes(plan: Plan) -> dict[int, list[Path]]:
    """The takes of each recipe, by its number. Raises ConfigError if the folder has too few good
    clips."""
    takes = find_good_takes(plan.folder)
    if len(takes) < plan.clips:
        raise ConfigError(f"clips={plan.clips}: {plan.folder} has {len(takes)} good ones")
    (plan.out / "recipes").mkdir(parents=True, exist_ok=True)
    drawn = {}
    for number in plan.only:
        files = draw_recipe(takes, plan.clips, np.random.default_rng([plan.seed, number]))
        motions = list_motions(files, plan.recipe(number).parent)
        document = {"name": f"recipe-{number}", "motions": motions}
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        plan.recipe(number).write_text(text, encoding="utf-8")
        drawn[number] = files
    return drawn


def write_table(measured: Mapping[int, Row], drawn: Mapping[int, Sequence[Path]]) -> str:
    """A line a recipe, and the median over them; "-" where there was nothing to measure."""
    lines = ["| recipe | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for number, row in measured.items():
        cells = [format_number(known([row], name)) for name in COLUMNS]
        clips = ", ".join(file.stem for file in drawn[number])
        lines.append(f"| {number}: {clips} | " + " | ".join(cells) + " |")
    rows = list(measured.values())
    cells = [format_number(known(rows, name)) for name in COLUMNS]
    lines.append(f"| median of {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def format_number(values: Sequence[float]) -> str:
    return f"{median(values):.3g}" if values else "-"


def parse_plan(arguments: Sequence[str]) -> Plan:
    """Raises ConfigError, which names the key."""
    positional, pairs = split_arguments(arguments)
    if len(positional) != 1 or not Path(positional[0]).is_dir():
        raise ConfigError(
            f"name one folder of clips, as takes/; got {' '.join(positional) or 'none'}"
        )
    defaults = {
        "count": "10",
        "clips": "5",
        "seed": "0",
        "preset": "locomotion",
        "samples": "19000000",
        "only": "",
        "out": str(places.cards() / "recipes"),
        "threads": "0",
    }
    options = parse_options(pairs, defaults)
    count = parse_int(options, "count", 1)
    return Plan(
        Path(positional[0]),
        count,
        parse_int(options, "clips", 1),
        parse_int(options, "seed", 0),
        options["preset"],
        parse_int(options, "samples", 1),
        parse_only(options["only"], count),
        Path(options["out"]).absolute(),
        parse_int(options, "threads", 0),
    )


def parse_only(text: str, count: int) -> tuple[int, ...]:
    """The numbers that `text` lists; all below `count` where it lists none."""
    names = [name for name in text.split(",") if name] or [str(number) for number in range(count)]
    for name in names:
        if not name.isdecimal() or int(name) >= count:
            raise ConfigError(f"only={name} is not a whole number from 0 to {count - 1}")
    return tuple(dict.fromkeys(int(name) for name in names))


def run_all(plan: Plan) -> int:
    """Trains and measures each recipe, and writes the table after each. Returns how many
    trainings failed."""
    drawn = write_recipes(plan)
    measurement = whole_card(EPISODES)
    measured: dict[int, Row] = {}
    for number in plan.only:
        rows = train_and_measure(plan.overrides(number), measurement, f"recipe {number}")
        if rows:
            measured[number] = rows[-1]
            table = write_table(measured, drawn)
            (plan.out / "recipes.md").write_text(table + "\n", encoding="utf-8")
    if measured:
        print(write_table(measured, drawn))
    return len(plan.only) - len(measured)


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        failed = run_all(parse_plan(arguments))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    except (StoreError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
