"""A card as text: one line per measure, the most important first; one column per library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pretrain.evaluation.card import Card

NOTHING = "-"
LABEL = 40  # characters
COLUMN = 22
ROBUSTNESS = {
    "undisturbed": "survives 5 s under own z, share",
    "friction_50_percent": "  friction x 0.5",
    "friction_150_percent": "  friction x 1.5",
    "mass_80_percent": "  mass - 20 %",
    "mass_120_percent": "  mass + 20 %",
    "latency_1_step": "  targets one control step late",
    "push_100_newton": "stays up, pushed by 100 N for 0.2 s",
    "push_200_newton": "  200 N",
    "push_500_newton": "  500 N",
    "gets_up": "stands within 3 s of lying",
    "gets_up_after_own_fall": "up within 3 s of a fall of its own",
}


@dataclass(frozen=True)
class Row:
    label: str
    group: str  # key of the card that the row needs
    text: Callable[[Card], str]


def table(cards: dict[str, Card]) -> str:
    """Cards side by side, by their references; a measure that none of them has is left out."""
    columns = list(cards.values())
    rows = [row for row in _rows(columns) if any(row.group in card for card in columns)]
    head = " " * LABEL + "".join(f"{ref:>{COLUMN}}" for ref in cards)
    lines = [_line(row, columns) for row in rows]
    empty = any(NOTHING in line.split() for line in lines)
    return "\n".join([head, *lines, *([f"{NOTHING}: nothing to measure"] if empty else [])])


def _line(row: Row, cards: Sequence[Card]) -> str:
    line = f"{row.label:<{LABEL}}" + "".join(f"{row.text(card):>{COLUMN}}" for card in cards)
    return line.rstrip()


def _rows(cards: Sequence[Card]) -> list[Row]:
    return [
        _number("falls a minute, own z of upright clips", "falls_per_minute.own"),
        *_clip_rows(cards, "falls_per_minute.per_clip"),
        _number("falls a minute, random z", "falls_per_minute.random"),
        _number("time on clip under own z, mean", "time_on_clip.mean"),
        _number("time on clip, least", "time_on_clip.least"),
        *_clip_rows(cards, "time_on_clip.per_clip"),
        _number("switch success, mean of all pairs", "switch_success.mean"),
        Row("information about z, nats", "information", _information),
        Row("distinguishable skills", "information", _distinguishable),
        _range("forward speed, m/s", "steering.forward_speed"),
        _range("leftward speed, m/s", "steering.lateral_speed"),
        _range("turn rate, rad/s", "steering.turn_rate"),
        Row("stands", "steering", _stands),
        _number("seconds to 90 % of a change", "steering.seconds_to_90_percent"),
        _number("  changes that get there in 4 s", "steering.reach_90_percent"),
        *(_number(label, f"robustness.{name}") for name, label in ROBUSTNESS.items()),
        Row("survival under random z", "survival", _survival),
        *_clip_rows(cards, "survival_per_clip", "begun in "),
        _number("coverage, seen at least once", "coverage"),
        *_clip_rows(cards, "coverage_per_clip"),
        _number("fidelity, 0 is best", "fidelity"),
        _number("jerk over the clips'", "jerk"),
        Row("pose error under own z, m", "pose_error_m", lambda card: ""),
        *_clip_rows(cards, "pose_error_m", digits=3),
        Row("speed of standing feet, own z, m/s", "foot_slide_m_s", lambda card: ""),
        *_clip_rows(cards, "foot_slide_m_s"),
        *_clip_rows(cards, "clip_foot_slide_m_s", "in the clip "),
        _number("likeness to the clips", "style"),
        _number("mean speed under random z, m/s", "speed"),
        Row("samples, time x cores", "cost", _cost),
    ]


def value_at(card: Card, path: str) -> Any:
    """The card's value at `path`, keys separated by dots; None where there is none."""
    value: Any = card
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _clip_rows(cards: Sequence[Card], path: str, prefix: str = "", digits: int = 2) -> list[Row]:
    """A row for each clip that any of `cards` has at `path`."""
    group = path.partition(".")[0]
    names = [name for card in cards for name in value_at(card, path) or {}]

    def row(name: str) -> Row:
        def text(card: Card) -> str:
            return _text((value_at(card, path) or {}).get(name), digits)

        return Row(f"  {prefix}{name}", group, text)

    return [row(name) for name in dict.fromkeys(names)]


def _text(x: float | None, digits: int = 2) -> str:
    return NOTHING if x is None else f"{x:.{digits}f}"


def _number(label: str, path: str) -> Row:
    return Row(label, path.partition(".")[0], lambda card: _text(value_at(card, path)))


def _range(label: str, path: str) -> Row:
    def text(card: Card) -> str:
        ends = value_at(card, path)
        return f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else NOTHING

    return Row(label, path.partition(".")[0], text)


def _stands(card: Card) -> str:
    words = {True: "yes", False: "no", None: NOTHING}
    return words[value_at(card, "steering.stands")]


def _information(card: Card) -> str:
    information = card.get("information")
    if information is None or information["nats"] is None:
        return NOTHING
    return f"{information['nats']:.2f} in {information['latent_dim']}-D"


def _distinguishable(card: Card) -> str:
    information = card.get("information")
    return (
        f"{information['distinguishable']:.1f} of {information['distinguishable_of']}"
        if information
        else NOTHING
    )


def _survival(card: Card) -> str:
    if "survival" not in card:
        return NOTHING
    steps = card["detail"]["episode_steps"]
    return f"{card['survival'] * steps:.0f}/{steps} steps"


def _cost(card: Card) -> str:
    spent = card.get("cost")
    if not spent:
        return NOTHING
    own = f"{spent['samples'] / 1e6:.1f} M, {spent['seconds'] / 60:.0f} min x {spent['cores']}"
    parents = 0
    parent = spent.get("parent")
    while parent:
        parents += parent["samples"]
        parent = parent.get("parent")
    return f"{own} after {parents / 1e6:.1f} M" if parents else own
