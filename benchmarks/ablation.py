"""The effect of each mechanism beyond ASE: trainings with one of them off at a time, seed by seed,
and the samples after which each run meets the bars.

python -m benchmarks.ablation                       51 runs of 14 M samples, 15 h (estimated)
python -m benchmarks.ablation only=anchor,symmetry seeds=2 preset=locomotion samples=6000000

keys:
  preset=mobility      what is trained
  samples=14000000     of each run
  warm.library=        published library, as NAME@N, that preset=switching continues
  seeds=3              runs of each variant, with the seeds 0, 1, ...
  only=                names of mechanisms, comma-separated; default: all of them
  time_on_clip=0.3     bar: at least
  falls_own=3          bar: falls a minute under upright clips' own z, at most
  out=                 folder of runs and of the table; default: below the folder of cards
  threads=0            of each training; 0: all that the process may use

The same command skips finished runs and resumes an interrupted one. A mechanism that the preset
does not have is left out. A run that fails, for example by divergence, is named on stderr, counts
as below the bars, and makes the exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.finished_run import train_and_measure
from benchmarks.learning import HEADLINE, Row, headline, known
from pretrain.cli import program
from pretrain.config import PretrainConfig
from pretrain.options import parse_int, parse_options
from pretrain.overrides import ConfigError, load_config
from pretrain.parent import find_parent
from skills_store import places
from skills_store.errors import StoreError

FULL = "full"  # the variant with all mechanisms
MILESTONES = 4  # of a run
# Name -> what turns it off. Without the assist force all clips are phase-locked from the first
# sample; without the foot swing the assist force weakens whether or not feet are lifted.
MECHANISMS: Mapping[str, tuple[str, ...]] = {
    "warm_start": (
        "warm.library=",
        "warm.encoder_steps=0",
        "warm.clone_steps=0",
        "warm.distill_steps=0",
        "warm.value_samples=0",
    ),
    "assist_force": ("curriculum.assist_start=0",),
    "focus": ("curriculum.focus=1",),
    "velocity_bound": ("tracking_termination.max_velocity_excess=null",),
    "imitation_reward": ("imitation.reward_weight=0",),
    "nearer_reward": ("imitation.nearer_weight=0",),
    "pose_gradient": ("imitation.pose_gradient_weight=0",),
    "conditional_discriminator": ("disc.conditional=false",),
    "anchor": ("enc.anchor_weight=0",),
    "near_latents": ("latent.near_prob=0",),
    "own_return": ("latent.own_return=false",),
    "symmetry": ("symmetry=false",),
    "foot_swing": ("imitation.foot_weight=0",),
    "latent_distillation": ("warm.distill_steps=0",),
    "switch_assist": ("curriculum.switch_assist_start=0",),
    "averaged_weights": ("ppo.average_decay=0",),
    "action_smoothing": ("ppo.smoothing_weight=0",),
    "colored_noise": ("ppo.noise_color=0",),
}
# groups of keys of the training aids
AIDS = ("curriculum", "tracking_termination", "imitation")


@dataclass(frozen=True)
class Bars:
    """The bars that a library must meet."""

    time_on_clip: float  # at least
    falls_own: float  # a minute, at most

    def are_met(self, row: Row) -> bool:
        falls = row["falls_own"]
        return row["time_on_clip"] >= self.time_on_clip and (falls or 0.0) <= self.falls_own


@dataclass(frozen=True)
class Plan:
    preset: str
    samples: int
    library: str  # that training continues; empty: none
    seeds: int
    variants: tuple[str, ...]
    bars: Bars
    out: Path
    threads: int

    def overrides(self, variant: str, seed: int) -> list[str]:
        """The configuration of one run."""
        return [
            f"preset={self.preset}",
            f"name=ablation-{variant.replace('_', '-')}",
            f"seed={seed}",
            f"samples={self.samples}",
            f"milestone_interval={max(1, self.samples // MILESTONES)}",
            f"threads={self.threads}",
            f"runs={self.out / 'runs'}",
            "publish=false",
            *([f"warm.library={self.library}"] if self.library else []),
            *MECHANISMS.get(variant, ()),
        ]


def check_library(plan: Plan) -> None:
    """Raises ValueError or StoreError where the preset continues a library that is not given or not
    in the store."""
    find_parent(load_config(PretrainConfig, "pretrain.conf", plan.overrides(FULL, 0)))


def has_mechanism(plan: Plan, mechanism: str) -> bool:
    """Whether turning `mechanism` off changes what the preset trains."""
    full = load_config(PretrainConfig, "pretrain.conf", plan.overrides(FULL, 0))
    without = load_config(PretrainConfig, "pretrain.conf", plan.overrides(mechanism, 0))
    same = {"name": full.name}
    if not full.assisted:  # then these keys have no effect
        same |= {key: getattr(full, key) for key in AIDS}
    return without.model_copy(update=same) != full


def run_variant(plan: Plan, variant: str, seed: int) -> list[Row]:
    """The milestones of one run; empty if it failed."""
    turned_off = " ".join(MECHANISMS.get(variant, ()))
    title = f"{variant}, seed {seed}" + (f" ({turned_off})" if turned_off else "")
    return train_and_measure(plan.overrides(variant, seed), headline(), title)


def samples_to(rows: Sequence[Row], bars: Bars) -> int | None:
    """Samples of the first milestone that meets the bars; None if there is none."""
    return next((row["samples"] for row in rows if bars.are_met(row)), None)


def write_table(runs: Mapping[str, Sequence[Sequence[Row]]], bars: Bars) -> str:
    """A line a variant: how many runs met the bars and after how many samples, and the measures at
    the end, median (least to most)."""
    header = ["without", "bars met", "million samples to them", *HEADLINE]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for variant, seeds in runs.items():
        reached = [samples for rows in seeds if (samples := samples_to(rows, bars)) is not None]
        ends = [rows[-1] for rows in seeds if rows]
        cells = [
            "-" if variant == FULL else variant,
            f"{len(reached)} of {len(seeds)}",
            format_range([samples / 1e6 for samples in reached]),
            *(format_range(known(ends, name)) for name in HEADLINE),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def format_range(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def parse_plan(arguments: Sequence[str]) -> Plan:
    """Raises ConfigError, which names the key."""
    defaults = {
        "preset": "mobility",
        "samples": "14000000",
        "warm.library": "",
        "seeds": "3",
        "only": ",".join(MECHANISMS),
        "time_on_clip": "0.3",
        "falls_own": "3",
        "out": str(places.cards() / "ablation"),
        "threads": "0",
    }
    options = parse_options(arguments, defaults)
    mechanisms = list(dict.fromkeys(name for name in options["only"].split(",") if name))
    if unknown := [name for name in mechanisms if name not in MECHANISMS]:
        raise ConfigError(
            f"only={unknown[0]}: no such mechanism; there are {', '.join(MECHANISMS)}"
        )
    return Plan(
        options["preset"],
        parse_int(options, "samples", 1),
        options["warm.library"],
        parse_int(options, "seeds", 1),
        (FULL, *mechanisms),
        Bars(parse_bar(options, "time_on_clip"), parse_bar(options, "falls_own", most=60.0)),
        Path(options["out"]),
        parse_int(options, "threads", 0),
    )


def parse_bar(options: Mapping[str, str], key: str, most: float = 1.0) -> float:
    """`options[key]` as a number from 0 to `most`."""
    try:
        value = float(options[key])
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise ConfigError(f"{key}={options[key]} is not a number from 0 to {most:g}")
    return value


def run_all(plan: Plan) -> dict[str, list[list[Row]]]:
    """Trains and measures every variant, seed by seed, and writes the table after every run.
    Returns the milestones of each run; empty if it failed."""
    variants = [name for name in plan.variants if name == FULL or has_mechanism(plan, name)]
    runs: dict[str, list[list[Row]]] = {variant: [] for variant in variants}
    plan.out.mkdir(parents=True, exist_ok=True)
    for seed in range(plan.seeds):
        for variant in variants:
            runs[variant].append(run_variant(plan, variant, seed))
            trained = {name: seeds for name, seeds in runs.items() if seeds}
            table = write_table(trained, plan.bars)
            (plan.out / "ablation.md").write_text(table + "\n", encoding="utf-8")
    return runs


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        plan = parse_plan(arguments)
        check_library(plan)
        runs = run_all(plan)
        print(write_table(runs, plan.bars))
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    except (StoreError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    failed = any(not rows for seeds in runs.values() for rows in seeds)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
