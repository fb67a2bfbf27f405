"""The skill card of a published library, measured on the graphs that are served.

python -m pretrain.evaluate skill=humanoid@latest       printed, and as card.json, CARD.md and pictures in cards/humanoid@1
python -m pretrain.evaluate humanoid@1 humanoid@2       side by side, a folder each
python -m pretrain.evaluate humanoid@1 motions=all      by other clips than those it learned from

keys:
  skill=humanoid@latest   reference of the library, where none is given by itself
  store=                  skill store; default $REPERTOIRE_STORE, else as in skills_store/places.py
  motions=                recipe of the clips; default: those of the library
  episodes=1024           episodes under random skills
  seed=1234               seed of all random draws
  json=false              print one JSON object
  out=                    folder; empty: write nothing. Default: as in skills_store/places.py; the folder's name
                          has what of motions, episodes and seed is not the default
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pretrain.ase.style import ReferenceWindows
from pretrain.characters.state import CharacterState, unflatten
from pretrain.cli import parse_flag, parse_int, parse_options, program
from pretrain.evaluation.card import COVERED, Card, write_card
from pretrain.evaluation.coverage import Coverage, coverage_targets
from pretrain.evaluation.episodes import (
    BURN_IN,
    COMMON,
    Conditions,
    begun_in,
    nearest_clip,
    of_episodes,
    random_skill_episodes,
    redrawn,
    world,
)
from pretrain.evaluation.measures import frechet, interval, jerk, mean, share_interval
from pretrain.evaluation.table import table
from pretrain.evaluation.trials import diversity, performance, recovery
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.library import MotionLibrary
from pretrain.motion.recipe import Dataset
from pretrain.sim.env import CharacterEnv
from pretrain.training_data import TrainingData, load_other_data, load_published_data
from skills_store import places
from skills_store.errors import StoreError
from skills_store.open import open_store
from skills_store.runtime.library import SkillLibrary
from skills_store.version import Version

FALLEN = 512  # worlds that are pushed, and laid down
MISSED = 0.1  # coverage below which a clip is named as not performed
DIFFER = 1.2  # diversity below which skills are named as alike: who ignores z has 1
ENOUGH = 1000  # episodes


def fidelity(windows: Tensor, demos: ReferenceWindows, scale: Tensor) -> float | None:
    """Frechet distance of `windows` to the clips', over that of the clips' first halves to their second; None of nothing."""
    if len(windows) < 2:
        return None
    first = torch.cumsum(demos.counts, 0) - demos.counts
    early = torch.arange(len(demos.clip)) - first[demos.clip] < demos.counts[demos.clip] / 2
    clips = demos.windows / scale
    return frechet(windows / scale, clips) / frechet(clips[early], clips[~early])


def skill_card(skills: SkillLibrary, material: TrainingData, under: Conditions) -> Card:
    """The measures of `skills` as plain JSON. Plain numbers at the top; n and 95 % intervals of the means under `detail`."""
    window, library = skills.window_length, material.library
    rng = torch.Generator().manual_seed(under.seed)

    def make_env(n: int) -> CharacterEnv:
        return world(skills, material, n, under, rng)

    env = make_env(under.episodes)
    like = nearest_clip(skills, env)
    targets, scale = coverage_targets(material.dataset.clips, library, window)
    episodes = random_skill_episodes(skills, env, redrawn(skills, under), Coverage(targets, scale), rng)
    survival, falls = episodes.lengths / env.episode_length, float(episodes.falls.sum())
    begun = begun_in(episodes.clip, survival, library)
    own = [library.names.index(target.name) for target in targets]  # mirrors left out
    frame_scale = scale.view(window, -1)[-1]
    pooled = clip_embeddings(skills, tuple(material.dataset.clips[i] for i in own))
    latents = {i: torch.from_numpy(z) for i, z in zip(own, pooled.values(), strict=True)}
    apart = diversity(skills.act, make_env, own, frame_scale, skills.latent_dim, rng, like)
    faithful = fidelity(episodes.windows, material.demos, scale)
    performed = performance(skills.act, make_env, latents, rng)
    trials = recovery(skills.act, make_env, skills.latent_dim, min(under.episodes, FALLEN), rng, like)
    risen = {**trials, "in_play": episodes.rose}
    card = {
        "survival": float(survival.mean()),
        "survival_per_clip": {name: mean(x) for name, x in begun.items()},
        "between_falls": float(episodes.lengths.sum()) / CONTROL_RATE / falls if falls else None,
        "skill_recovery": float(episodes.agreement.mean()),
        "style": None if episodes.style is None else float(episodes.style.mean()),
        "coverage": float(np.mean(list(episodes.coverage.values()))),
        "coverage_per_clip": episodes.coverage,
        "speed": float(episodes.speed.mean()),
        "diversity": apart.card(),
        "fidelity": faithful,
        "perform": {clip: {name: mean(x) for name, x in found.items()} for clip, found in performed.items()},
        "recovery": {name: mean(x) for name, x in risen.items()},
        "smoothness": float(episodes.jerk.mean()) / clip_jerk(library, own),
        "detail": {
            **of_episodes(episodes, under),
            "survival_per_clip": {name: interval(x) for name, x in begun.items()},
            "apart": {"different": interval(apart.different), "same": interval(apart.same), "clips": apart.clips},
            "perform": {clip: {name: interval(x) for name, x in found.items()} for clip, found in performed.items()},
            "recovery": {name: share_interval(x) for name, x in risen.items()},
            "tau": {target.name: target.tau for target in targets},
            "burn_in_steps": BURN_IN,
            "broken_worlds": env.broken,
        },
    }
    return {**card, "caveats": caveats(card, material.dataset)}


def caveats(card: Card, dataset: Dataset) -> list[str]:
    """What a reader of the card should know before trusting it, a sentence each."""
    clips = dataset.originals
    few = [f"{len(clips)} clip(s), {sum(c.duration for c in clips):.1f} s: too little for skills that differ"]
    shares = card["coverage_per_clip"].items()
    missed = [f"{name} is not performed under random skills" for name, share in shares if share < MISSED]
    partly = [f"{name} is covered to {share:.2f} only" for name, share in shares if MISSED <= share < COVERED]
    apart = card["diversity"]["over_repeat"]
    alike = "skills hardly differ: under different z rollouts are {:.2f} times as far apart as under the same"
    short = [f"{card['detail']['survival']['n']} episodes, fewer than {ENOUGH}"]
    return [
        *(few if len(clips) < 3 else []),
        *(short if card["detail"]["survival"]["n"] < ENOUGH else []),
        *dataset.doubts,
        *([alike.format(apart)] if apart is not None and apart < DIFFER else []),
        *missed,
        *partly,
    ]


def clip_jerk(library: MotionLibrary, clips: list[int]) -> float:
    """Mean absolute jerk of the joints over the frames of `clips`, rad/s^3."""
    joints = [unflatten(library.frames[library.starts[c] :][: library.lengths[c]]).joint_pos for c in clips]
    return float(np.average([float(jerk(x, CONTROL_RATE)) for x in joints], weights=[len(x) for x in joints]))


def clip_embeddings(skills: SkillLibrary, clips: tuple[MotionClip, ...]) -> dict[str, np.ndarray]:
    """Each clip's pooled z, by the published encoder, {name: (D,)}."""
    return {clip.name: skills.embed(_flat(clip.states())).pooled for clip in clips}


def _flat(states: CharacterState) -> np.ndarray:
    return states.flatten().astype(np.float32)


def evaluate(skills: SkillLibrary, under: Conditions, motions: str = "") -> Card:
    """The card of a published library, with what its own says of the run; by the clips of recipe `motions`, if one is named."""
    manifest, window = skills.version.manifest, skills.window_length
    material = load_other_data(manifest, motions, window) if motions else load_published_data(manifest, window)
    card = {**skill_card(skills, material, under), **of_the_run(manifest.card)}
    by = [f"measured by the clips of {motions!r}, whatever it learned from"] if motions else []
    return {**card, "caveats": [*by, *card["caveats"]]}


def of_the_run(card: Card) -> Card:
    """What a card says of the training, and no trial can tell again."""
    return {name: card[name] for name in ("cost", "learning") if name in card}


def contact_sheet(page: Path, store: str, version: Version, card: Card) -> str:
    """Draw the skill of every clip that the library knows below the card, where this machine can. -> what to tell the user."""
    known = [clip for clip in card["perform"] if clip in version.manifest.latent.clips]
    if not known:
        return f"; no picture of the clips: {version.ref} learned from none of them"
    picture, clips = page.parent / "clips.png", ",".join(known)
    # in a process of its own: how MuJoCo draws is settled before its first import
    command = [sys.executable, "-m", "pretrain.render", f"skill={version.pinned}", f"clips={clips}", f"out={picture}"]
    drawn = subprocess.run([*command, f"store={store}"], capture_output=True, text=True, check=False)
    if drawn.returncode:
        reason = (drawn.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"; no picture of the clips: {reason}"
    with page.open("a", encoding="utf-8") as file:
        caption = f"Each clip's latent, held for four seconds; who stays in place is drawn side by side: {clips}"
        file.write(f"## {caption}\n\n![clips](clips.png)\n")
    return f" and {picture}"


def main(arguments: list[str]) -> int:
    conditions = {"motions": "", "episodes": str(COMMON.episodes), "seed": str(COMMON.seed)}
    defaults = {"skill": "humanoid@latest", "store": "", **conditions, "json": "false"}
    try:
        cards = str(places.cards())  # where a folder for each library is, if none is asked for
        asked = parse_options([a for a in arguments if "=" in a], {**defaults, "out": cards})
        refs = [a for a in arguments if "=" not in a] or [asked["skill"]]
        under = Conditions(episodes=parse_int(asked, "episodes", 2), seed=parse_int(asked, "seed", 0))
        # a quick look, or one by other clips, does not replace the card
        unusual = [Path(asked[name]).stem for name, usual in conditions.items() if asked[name] != usual]
        as_json, out, threads = parse_flag(asked, "json"), Path(asked["out"]), torch.get_num_threads()
        store = open_store(asked["store"])
        libraries = [SkillLibrary.open(store, ref, intra_op_num_threads=threads) for ref in dict.fromkeys(refs)]
        out.mkdir(parents=True, exist_ok=True)  # here, not after minutes of trials
        found = [(skills.version, evaluate(skills, under, asked["motions"])) for skills in libraries]
    except (StoreError, ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    measured = {version.ref: card for version, card in found}
    if as_json:
        print(json.dumps(found[0][1] if len(found) == 1 else measured, indent=2))
    else:
        print(table(measured))
    try:
        for version, card in found if asked["out"] else ():
            folder = out if len(found) == 1 and asked["out"] != cards else out / "-".join([version.ref, *unusual])
            page = write_card(folder, version.ref, table({version.ref: card}), card, version.manifest.latent.clips)
            print(f"wrote {page}{contact_sheet(page, asked['store'], version, card)}", file=sys.stderr)
    except OSError as error:
        print(f"out={asked['out']}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(program(main, lambda: str(__doc__)))
