"""The skill card: the measures of a published library, most important first.

All use the published graphs and the deterministic policy. Plain numbers are at the top; n and the
95 % interval of each mean are under `detail`, by the same names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator

from pretrain.evaluation.card import Card
from pretrain.evaluation.caveats import caveats
from pretrain.evaluation.conditions import QUICK, Conditions
from pretrain.evaluation.discriminant import distinguishable_skills
from pretrain.evaluation.episodes import BURN_IN, Episodes, by_start_clip, random_skill_episodes
from pretrain.evaluation.fidelity import fidelity
from pretrain.evaluation.headline import headline
from pretrain.evaluation.held_skills import (
    HeldSkills,
    clip_slide_speeds,
    own_and_random_skills,
    own_skills,
    pose_error,
    slide_speeds,
)
from pretrain.evaluation.information import information_bound
from pretrain.evaluation.intervals import interval, mean, share_interval
from pretrain.evaluation.jerk import clip_jerk
from pretrain.evaluation.robustness import robustness
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.steering import steering
from pretrain.evaluation.switching import Switches, switch_rollouts
from pretrain.motion.clip import control_steps
from pretrain.training_data import TrainingData, load_other_data, load_published_data
from skills_store.manifest import Manifest
from skills_store.runtime.library import SkillLibrary

REPEATS = 8  # worlds under each random z that is held
PER_RUN = ("cost", "learning")  # not measurable by an evaluation


def skill_card(skills: SkillLibrary, data: TrainingData, conditions: Conditions) -> Card:
    """All measures of `skills` on the clips of `data`, as plain JSON."""
    setup = Setup(skills, data, conditions)
    rng = torch.Generator().manual_seed(conditions.seed)
    clip_skills, random_skills = own_and_random_skills(setup, conditions.latents, REPEATS, rng)
    switches = _switches(setup, rng)
    episodes = random_skill_episodes(setup, rng)
    parts = [
        headline(setup, clip_skills, switches, episodes),
        _information(setup, episodes, random_skills),
        _steering(setup, clip_skills, random_skills, switches),
        _robustness(setup, episodes, rng),
        _of_episodes(setup, episodes),
        _likeness(setup, clip_skills, episodes),
    ]
    card: Card = {}
    detail: Card = {}
    for numbers, intervals in parts:
        card |= numbers
        detail |= intervals
    card["detail"] = detail
    return {**card, "caveats": caveats(card, data.dataset)}


def quick_card(
    skills: SkillLibrary, data: TrainingData, seed: int, engine: str = QUICK.engine
) -> Card:
    """The first three measures alone, with fewer worlds: an eighth of the random latents', half of
    the own latents', an eighth to a half of the switches'."""
    setup = Setup(skills, data, Conditions(QUICK.episodes, seed, engine=engine))
    rng = torch.Generator().manual_seed(seed)
    clip_skills = own_skills(setup, rng)
    switches = _switches(setup, rng)
    card, detail = headline(setup, clip_skills, switches, random_skill_episodes(setup, rng))
    return {**card, "detail": detail, "caveats": []}


def evaluate(skills: SkillLibrary, conditions: Conditions, motions: str = "") -> Card:
    """The card of a published library, with its published facts of the run.

    The clips are those of recipe `motions`, if given, else the library's."""
    data = clips_of(skills, motions)
    card = skill_card(skills, data, conditions)
    manifest = skills.version.manifest
    card |= facts_of_run(manifest.card)
    notes = _describe_other_clips(manifest, data, motions) if motions else []
    return {**card, "caveats": [*notes, *card["caveats"]]}


def _describe_other_clips(manifest: Manifest, data: TrainingData, motions: str) -> list[str]:
    """Caveats of a card that is measured on other clips than those of the library's training."""
    notes = [f"measured by the clips of {motions!r}, whatever it learned from"]
    learned = {clip.name: clip.digest for clip in manifest.lineage.clips}
    others = [
        clip.name
        for clip in data.dataset.originals
        if learned.get(clip.name, clip.digest) != clip.digest
    ]
    if others:
        names = ", ".join(others)
        notes.append(f"under the z of the library's own clips of these names: {names}")
    return notes


def clips_of(skills: SkillLibrary, motions: str = "") -> TrainingData:
    """Clips to measure a library on: of recipe `motions`, or of its training."""
    manifest = skills.version.manifest
    window = skills.window_length
    return (
        load_other_data(manifest, motions, window)
        if motions
        else load_published_data(manifest, window)
    )


def facts_of_run(card: Card) -> Card:
    """A card's entries on the training."""
    return {name: card[name] for name in PER_RUN if name in card}


def _switches(setup: Setup, rng: Generator) -> Switches | None:
    return switch_rollouts(setup, rng) if len(setup.targets) > 1 else None


def _information(setup: Setup, episodes: Episodes, random_skills: HeldSkills) -> tuple[Card, Card]:
    cosine = interval(episodes.agreement)
    dim = setup.skills.latent_dim
    distinct = distinguishable_skills(setup, random_skills)
    numbers = {
        "nats": information_bound(cosine["mean"], dim),
        "latent_dim": dim,
        "mean_cosine": cosine["mean"],
        "distinguishable": distinct["mean"],
        "distinguishable_of": distinct["n"],
    }
    ends = [information_bound(end, dim) for end in cosine["interval"]]
    nats = {"n": cosine["n"], "mean": numbers["nats"], "interval": ends}
    detail = {"nats": nats, "mean_cosine": cosine, "distinguishable": distinct}
    return {"information": numbers}, {"information": detail}


def _steering(
    setup: Setup, clip_skills: HeldSkills, random_skills: HeldSkills, switches: Switches | None
) -> tuple[Card, Card]:
    numbers, detail = steering(setup, clip_skills, random_skills, switches)
    return {"steering": numbers}, {"steering": detail}


def _robustness(setup: Setup, episodes: Episodes, rng: Generator) -> tuple[Card, Card]:
    measures = robustness(setup, rng)
    measures["gets_up_after_own_fall"] = share_interval(episodes.recovered)
    numbers = {name: measure["mean"] for name, measure in measures.items()}
    return {"robustness": numbers}, {"robustness": measures}


def _of_episodes(setup: Setup, episodes: Episodes) -> tuple[Card, Card]:
    """Survival, coverage, speed and style under random skills."""
    steps = control_steps(setup.conditions.seconds)
    survival = episodes.lengths / steps
    per_clip = by_start_clip(episodes.clip, survival, setup.library)
    covered = episodes.coverage
    numbers: dict[str, Any] = {
        "survival": float(survival.mean()),
        "survival_per_clip": {name: mean(x) for name, x in per_clip.items()},
        "coverage": sum(covered.values()) / len(covered),
        "coverage_per_clip": covered,
        "speed": float(episodes.speed.mean()),
        "style": None if episodes.style is None else float(episodes.style.mean()),
    }
    detail = {
        "survival": interval(survival),
        "survival_per_clip": {name: interval(x) for name, x in per_clip.items()},
        "speed": interval(episodes.speed),
        **({} if episodes.style is None else {"style": interval(episodes.style)}),
        "episode_steps": steps,
        "burn_in_steps": BURN_IN,
        "broken_worlds": episodes.broken,
    }
    return numbers, detail


def _likeness(setup: Setup, clip_skills: HeldSkills, episodes: Episodes) -> tuple[Card, Card]:
    """Fidelity, jerk, pose error and foot slide: how much the motion is like the clips'."""
    errors = pose_error(setup, clip_skills)
    slides = slide_speeds(setup, clip_skills)
    rough = interval(episodes.jerk)
    clips = setup.originals.tolist()
    numbers = {
        "fidelity": fidelity(episodes.windows, setup.data.demos, setup.scale),
        "jerk": rough["mean"] / clip_jerk(setup.library, clips),
        "pose_error_m": {name: mean(x) for name, x in errors.items()},
        "foot_slide_m_s": {name: mean(x) for name, x in slides.items()},
        "clip_foot_slide_m_s": clip_slide_speeds(setup),
    }
    detail = {
        "jerk": rough,
        "pose_error_m": {name: interval(x) for name, x in errors.items()},
        "foot_slide_m_s": {name: interval(x) for name, x in slides.items()},
    }
    return numbers, detail
