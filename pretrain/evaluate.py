"""The skill card of a published library, measured on the graphs that are served.

python -m pretrain.evaluate skill=humanoid@latest       printed, and as card.json, CARD.md and
                                                        pictures in cards/humanoid@4
python -m pretrain.evaluate humanoid@4 humanoid@1       side by side, a folder each
python -m pretrain.evaluate humanoid@1 motions=all      on other clips than those of its training
python -m pretrain.evaluate humanoid@1 quick=true       falls, time on clip and switches, printed

keys:
  skill=humanoid@latest   reference of the library, where none is given by itself
  store=                  skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py
  motions=                recipe of the clips; default: those of the library
  episodes=1024           episodes under random skills; the worlds of the other measures follow
  seed=1234               seed of all random draws
  quick=false             only the first three measures, with few worlds; writes nothing and takes
                          no `episodes` or `out`
  json=false              print one JSON object
  out=                    folder; empty: write nothing. Default: as in skills_store/places.py; the
                          folder's name has motions, episodes and seed where not the default
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from pretrain.cli import program
from pretrain.evaluation.card import Card, write_card
from pretrain.evaluation.conditions import COMMON, Conditions
from pretrain.evaluation.skill_card import clips_of, evaluate, quick_card
from pretrain.evaluation.table import table
from pretrain.options import parse_flag, parse_int, parse_options
from skills_store import places
from skills_store.errors import StoreError
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from skills_store.version import Version

CONDITIONS = {"motions": "", "episodes": str(COMMON.episodes), "seed": str(COMMON.seed)}


@dataclass(frozen=True)
class Request:
    """The libraries and conditions of the command line."""

    refs: tuple[str, ...]
    store: str
    motions: str
    conditions: Conditions
    quick: bool
    as_json: bool
    out: str  # empty: write nothing
    unusual: tuple[str, ...]  # CONDITIONS that are not the default, as in a folder's name

    @property
    def own_folder(self) -> bool:
        """Whether `out` names a folder for one card, not the folder of all cards."""
        return len(self.refs) == 1 and self.out != str(places.cards())

    def folder(self, version: Version) -> Path:
        if self.own_folder:
            return Path(self.out)
        return Path(self.out) / "-".join([version.ref, *self.unusual])


def parse(arguments: list[str]) -> Request:
    """ConfigError names an unknown key or a bad value."""
    others = {"skill": "humanoid@latest", "store": "", "quick": "false", "json": "false"}
    defaults = {**others, **CONDITIONS, "out": str(places.cards())}
    options = parse_options([a for a in arguments if "=" in a], defaults)
    refs = [a for a in arguments if "=" not in a] or [options["skill"]]
    quick = parse_flag(options, "quick")
    without_effect = [a for a in arguments if a.startswith(("episodes=", "out="))]
    if quick and without_effect:
        raise ValueError(
            f"{without_effect[0]} has no effect with quick=true; expected quick=true alone, or "
            f"{without_effect[0]} without it"
        )
    unusual = [
        f"{key}-{Path(options[key]).stem}"
        for key, usual in CONDITIONS.items()
        if options[key] != usual
    ]
    return Request(
        refs=tuple(dict.fromkeys(refs)),
        store=options["store"],
        motions=options["motions"],
        conditions=Conditions(parse_int(options, "episodes", 2), parse_int(options, "seed", 0)),
        quick=quick,
        as_json=parse_flag(options, "json"),
        out="" if quick else options["out"],
        unusual=tuple(unusual),
    )


def open_library(store: Store, ref: str) -> SkillLibrary:
    return SkillLibrary.open(store, ref, intra_op_num_threads=torch.get_num_threads())


def measure(request: Request, skills: SkillLibrary) -> Card:
    if request.quick:
        clips = clips_of(skills, request.motions)
        return quick_card(skills, clips, request.conditions.seed)
    return evaluate(skills, request.conditions, request.motions)


def draw_skills(page: Path, store: str, version: Version, card: Card) -> str:
    """Add pictures of each clip's z and of random skills to `page`, if rendering is available.

    Clips that the library was not trained on are left out. Returns a message for the user."""
    clip_latents = version.manifest.latent.clips
    shown = [clip for clip in card["time_on_clip"]["per_clip"] if clip in clip_latents]
    if not shown:
        return f"; no picture of the skills: {version.ref} learned from none of the clips"
    clips = ",".join(shown)
    picture = page.parent / "skills.png"
    # in a separate process: MuJoCo fixes its renderer at import
    command = [sys.executable, "-m", "pretrain.render", f"skill={version.pinned}", f"clips={clips}"]
    keys = [f"out={picture}", f"store={store}", "random=true"]
    completed = subprocess.run([*command, *keys], capture_output=True, text=True, check=False)
    if completed.returncode:
        reason = (completed.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"; no picture of the skills: {reason}"
    with page.open("a", encoding="utf-8") as file:
        file.write(f"## {CAPTION}\n\n![skills]({picture.name})\n")
    return f" and {picture}"


CAPTION = (
    "Each clip's own z for 10 s, two frames a second, and a minute of random skills. "
    "Bars: green within tolerance of the clip, gray up but not, red down"
)


def print_cards(request: Request, cards: dict[str, Card]) -> None:
    if request.as_json:
        shown = next(iter(cards.values())) if len(cards) == 1 else cards
        print(json.dumps(shown, indent=2))
    else:
        print(table(cards))


def write_cards(request: Request, cards: list[tuple[Version, Card]]) -> None:
    for version, card in cards:
        text = table({version.ref: card})
        folder = request.folder(version)
        page = write_card(folder, version.ref, text, card, version.manifest.latent.clips)
        pictures = draw_skills(page, request.store, version, card)
        print(f"wrote {page}{pictures}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    try:
        request = parse(arguments)
        store = open_store(request.store)
        libraries = [open_library(store, ref) for ref in request.refs]
        if request.out:
            Path(request.out).mkdir(parents=True, exist_ok=True)  # here, not after minutes
        cards = [(skills.version, measure(request, skills)) for skills in libraries]
    except (StoreError, ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print_cards(request, {version.ref: card for version, card in cards})
    try:
        if request.out:
            write_cards(request, cards)
    except OSError as error:
        print(f"out={request.out}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
