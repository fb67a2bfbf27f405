"""Play a state machine over controllers and planned tasks, and draw it.

python -m hlc.compose examples/two_targets.yaml out=sheet.png
python -m hlc.compose examples/two_targets.yaml out=video.webp

A state has a `controller` or a `task`, which is planned, and a `goal`; `on_success`, `on_time` and
`on_fall` name the state that follows. docs/tasks.md describes the file. The status is 0 if the
machine came to its end; with `publish`, if it was published.

keys:
  out=                 contact sheet to write, a .png; or a video, a .gif or .webp
  publish=             name to publish the machine under, as a controller; all its states need one
  episodes=64          plays that the published card measures
  store=               skill store; default $REPERTOIRE_STORE
  seed=0               seed of all random draws
  engine=mujoco        name in pretrain/sim/backend.py
  threads=0            0: all that the process may use
  json=false           print one JSON object, with the version and card of a published machine
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

if sys.platform == "linux":
    os.environ.setdefault("MUJOCO_GL", "egl")  # before mujoco is imported; there may be no display

import torch

from hlc.compose.behavior import make_behaviors
from hlc.compose.contact_sheet import draw_contact_sheet
from hlc.compose.player import Playthrough, play_machine
from hlc.compose.publish import BoundMachine, make_stages, publish_machine
from hlc.compose.state_machine import load_machine
from hlc.parent import SimulationConfig, open_parent
from pretrain.cli import program
from pretrain.evaluation.video import SUFFIXES, write_video
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.options import parse_flag, parse_int, parse_options, split_arguments
from pretrain.overrides import ConfigError
from skills_store.errors import StoreError
from skills_store.open import open_store
from skills_store.reference import check_name
from skills_store.version import Version

SHEET = ".png"
DEFAULTS = {
    "out": "",
    "publish": "",
    "episodes": "64",
    "store": "",
    "seed": "0",
    "engine": "mujoco",
    "threads": "0",
    "json": "false",
}


def run(file: Path, options: dict[str, str]) -> int:
    if options["out"] and not options["out"].endswith((SHEET, *SUFFIXES)):
        raise ConfigError(f"out={options['out']}, expected a {', '.join((SHEET, *SUFFIXES))}")
    if options["out"] and not Path(options["out"]).parent.is_dir():
        raise ConfigError(f"out={options['out']}: there is no folder {Path(options['out']).parent}")
    name = check_name(options["publish"]) if options["publish"] else None
    as_json = parse_flag(options, "json")
    episodes = parse_int(options, "episodes", 1)
    machine = load_machine(file)
    store = open_store(options["store"])
    if name is not None:
        store.check_kind(name, "controller")
    parent = open_parent(store, machine.skill)
    seed = parse_int(options, "seed", 0)
    starts, plans = (torch.Generator().manual_seed(seed + i) for i in range(2))
    length = control_steps(machine.seconds)
    simulated = SimulationConfig(length, options["engine"], parse_int(options, "threads", 0))
    bound = BoundMachine(machine, make_behaviors(machine, parent, store, simulated, plans), parent)
    if name is not None:
        make_stages(bound)  # what cannot be published is refused before anything is played
    played = play_machine(machine, bound.behaviors, parent, simulated, rng=starts)
    if not as_json:
        print(describe(played), flush=True)
    if options["out"]:
        draw(played, bound, Path(options["out"]))
    version = None
    if name is not None:
        version = publish_machine(name, bound, store, simulated, episodes=episodes, seed=seed)
    if as_json:
        print(json.dumps(summarize(played, version), indent=2))
    elif version is not None:
        ended = version.manifest.card["ended"]
        print(f"published {version.ref} ({version.digest[:19]}); {ended:.2f} of its plays end")
    return 0 if version is not None or played.ended else 1


def draw(played: Playthrough, bound: BoundMachine, picture: Path) -> None:
    """Write a contact sheet or a video; where rendering fails, print to stderr."""
    try:
        if picture.suffix == SHEET:
            draw_contact_sheet(played, bound.parent.character, bound.scene, picture)
        else:
            write_video(played.qpos, bound.scene.extend(bound.parent.character), picture)
    except OSError as error:
        print(f"no picture: {error}", file=sys.stderr)


def summarize(played: Playthrough, version: Version | None) -> dict[str, Any]:
    """The visits, and the published version with its card."""
    visits = [asdict(visit) for visit in played.visits]
    summary = {"visits": visits, "seconds": played.seconds, "ended": played.ended}
    if version is None:
        return summary
    return summary | {"version": version.pinned, "card": version.manifest.card}


def describe(played: Playthrough) -> str:
    """The visits, one per line, and why the run ended."""
    lines = []
    for visit in played.visits:
        distance = ""
        if visit.distance is not None:
            distance = f"   {visit.distance:.2f} {visit.distance_unit} from its goal"
        start, stop = (step / CONTROL_RATE for step in (visit.start, visit.stop))
        lines.append(f"{start:6.1f} to {stop:5.1f} s  {visit.name:<16} {visit.cause:<8}{distance}")
    end = "came to its end" if played.ended else f"ended by {played.cause}"
    return "\n".join([*lines, f"{end} after {played.seconds:.1f} s"])


def main(arguments: list[str]) -> int:
    files, pairs = split_arguments(arguments)
    try:
        options = parse_options(pairs, DEFAULTS)
        if len(files) != 1:
            raise ConfigError(f"expected one state machine file, got {len(files)}")
        return run(Path(files[0]), options)
    except (StoreError, KeyError, ValueError, RuntimeError, OSError) as error:
        message = error.args[0] if isinstance(error, KeyError) else error
        print(f"{type(error).__name__}: {message}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
