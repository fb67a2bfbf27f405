"""Caveats: limits on the validity of a card."""

from __future__ import annotations

from pretrain.evaluation.card import Card
from pretrain.motion.dataset import Dataset

RARELY = 0.5  # time on clip below which a clip is listed
OFTEN_FALLS = 1.0  # a minute
FEW_CLIPS = 3
ENOUGH = 1000  # episodes


def caveats(card: Card, dataset: Dataset) -> list[str]:
    """One sentence per caveat."""
    return [
        *_few_clips(dataset),
        *_few_episodes(card),
        *dataset.doubts,
        *_falling(card),
        *_alike(card),
        *_not_performed(card),
    ]


def _few_clips(dataset: Dataset) -> list[str]:
    clips = dataset.originals
    if len(clips) >= FEW_CLIPS:
        return []
    seconds = sum(clip.duration for clip in clips)
    return [f"{len(clips)} clip(s), {seconds:.1f} s: too little for skills that differ"]


def _few_episodes(card: Card) -> list[str]:
    n = card["detail"]["survival"]["n"]
    return [f"{n} episodes, fewer than {ENOUGH}"] if n < ENOUGH else []


def _falling(card: Card) -> list[str]:
    falls = card["falls_per_minute"]["per_clip"].items()
    return [
        f"{name} falls {rate:.1f} times a minute under its own z"
        for name, rate in falls
        if rate is not None and rate > OFTEN_FALLS
    ]


def _alike(card: Card) -> list[str]:
    information = card["information"]
    distinguishable = information["distinguishable"]
    if distinguishable > FEW_CLIPS:
        return []
    text = f"of {information['distinguishable_of']} random z only {distinguishable:.1f} can be"
    return [f"skills hardly differ: {text} told apart by the motion"]


def _not_performed(card: Card) -> list[str]:
    shares = card["time_on_clip"]["per_clip"].items()
    return [
        f"{name} is performed {share:.0%} of the time under its own z"
        for name, share in shares
        if share < RARELY
    ]
