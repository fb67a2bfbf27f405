"""A card for people: a line a measure, a column a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pretrain.evaluation.card import Card

NOTHING = "-"
Row = tuple[str, Callable[[Card], str]]


def rows(cards: Sequence[Card]) -> list[Row]:
    """Label and text of every measure, with the clips of any of `cards`."""

    def clips(measure: str) -> list[str]:
        return list(dict.fromkeys(name for card in cards for name in card.get(measure, {})))

    def survived(c: Card) -> str:
        steps = c["detail"]["episode_steps"]
        return f"{c['survival'] * steps:.0f}/{steps} steps"

    def cost(c: Card) -> str:
        spent = c.get("cost")
        return (
            f"{spent['samples'] / 1e6:.1f} M, {spent['seconds'] / 60:.0f} min x {spent['cores']}" if spent else NOTHING
        )

    def clip_rows(name: str) -> Row:
        return (
            f"  {name}",
            lambda c: f"{c['coverage_per_clip'][name]:.2f}" if name in c["coverage_per_clip"] else NOTHING,
        )

    def begun(name: str) -> Row:
        return f"  begun in {name}", lambda c: _number(c.get("survival_per_clip", {}).get(name))

    def performed(name: str) -> Row:
        def text(c: Card) -> str:
            found = c["perform"].get(name)
            return f"{found['survival']:.2f}  {found['pose_error_m']:.3f} m" if found else NOTHING

        return f"  {name}", text

    return [
        ("survival", survived),
        *(begun(name) for name in clips("survival_per_clip")),
        ("seconds between falls", lambda c: _number(c.get("between_falls"))),
        ("skill recovery", lambda c: f"{c['skill_recovery']:.3f}"),
        ("likeness to the clips", lambda c: _number(c.get("style"))),
        ("coverage", lambda c: f"{c['coverage']:.2f}"),
        *(clip_rows(name) for name in clips("coverage_per_clip")),
        ("speed", lambda c: f"{c['speed']:.2f} m/s"),
        ("diversity over the clips'", lambda c: _number(c["diversity"]["ratio"])),
        ("  over the same z", lambda c: _number(c["diversity"]["over_repeat"])),
        ("fidelity, 0 is best", lambda c: _number(c["fidelity"])),
        ("jerk over the clips'", lambda c: _number(c["smoothness"])),
        ("stands after lying", lambda c: _number(c["recovery"]["fall"])),
        ("up again after a fall", lambda c: _number(c["recovery"].get("in_play"))),
        ("stands after a push", lambda c: _number(c["recovery"]["push"])),
        ("a clip's own z for 10 s", lambda c: "stands, pose off"),
        *(performed(name) for name in clips("perform")),
        ("samples, time x cores", cost),
    ]


def _number(x: float | None) -> str:
    return NOTHING if x is None else f"{x:.2f}"


def table(cards: dict[str, Card]) -> str:
    """Cards for people, side by side."""
    columns = list(cards.values())
    lines = [f"{label:<28}" + "".join(f"{text(card):>24}" for card in columns) for label, text in rows(columns)]
    shown = [f"{NOTHING}: nothing to measure"] if any(NOTHING in line.split() for line in lines) else []
    return "\n".join([" " * 28 + "".join(f"{ref:>24}" for ref in cards), *lines, *shown])
