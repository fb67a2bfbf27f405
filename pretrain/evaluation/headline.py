"""The card's first three measures: falls a minute, time on clip, switch success."""

from __future__ import annotations

import torch

from pretrain.evaluation.card import Card
from pretrain.evaluation.episodes import Episodes
from pretrain.evaluation.held_skills import HeldSkills, falls_per_minute, time_on_clip
from pretrain.evaluation.intervals import interval
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.switching import Switches, switch_matrix, switch_success


def headline(
    setup: Setup, clip_skills: HeldSkills, switches: Switches | None, episodes: Episodes
) -> tuple[Card, Card]:
    """The numbers, and their n and 95 % intervals."""
    falls, falls_detail = _falls(setup, clip_skills, episodes)
    time, time_detail = _time(setup, clip_skills)
    switch, switch_detail = _switch(setup, switches)
    card = {"falls_per_minute": falls, "time_on_clip": time, "switch_success": switch}
    detail = {
        "falls_per_minute": falls_detail,
        "time_on_clip": time_detail,
        "switch_success": switch_detail,
    }
    return card, detail


def _falls(setup: Setup, clip_skills: HeldSkills, episodes: Episodes) -> tuple[Card, Card]:
    upright, per_clip = falls_per_minute(setup, clip_skills)
    random_falls = episodes.falls.per_minute()
    numbers = {name: measure["mean"] for name, measure in per_clip.items()}
    card = {"own": upright["mean"], "random": random_falls["mean"], "per_clip": numbers}
    return card, {"own": upright, "random": random_falls, "per_clip": per_clip}


def _time(setup: Setup, clip_skills: HeldSkills) -> tuple[Card, Card]:
    shares = time_on_clip(setup, clip_skills)
    per_clip = {name: interval(share) for name, share in shares.items()}
    numbers = {name: measure["mean"] for name, measure in per_clip.items()}
    least = min(numbers, key=numbers.__getitem__)
    overall = interval(torch.cat(list(shares.values())))
    card = {"mean": overall["mean"], "least": numbers[least], "per_clip": numbers}
    return card, {
        "mean": overall,
        "least": {"clip": least, **per_clip[least]},
        "per_clip": per_clip,
        "tau": {target.name: target.tau for target in setup.targets},
    }


def _switch(setup: Setup, switches: Switches | None) -> tuple[Card, Card]:
    """None for a library of one clip."""
    if switches is None:
        return {"mean": None, "matrix": {}}, interval(torch.empty(0))
    success = switch_success(switches)
    return {"mean": success["mean"], "matrix": switch_matrix(setup, switches)}, success
