"""Writes the card: card.json, and CARD.md with plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Card = dict[str, Any]
Latents = Mapping[str, Sequence[float]]


def write_card(folder: Path, ref: str, text: str, card: Card, latents: Latents) -> Path:
    """`text` is the table, `latents` the clips' z. -> CARD.md."""
    # here, since it imports matplotlib, which takes 0.4 s
    from pretrain.evaluation.card_plots import plot_card

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    lines = [f"# {ref}", "", "```", text, "```", ""]
    if card["caveats"]:
        lines += ["## Caveats", "", *(f"- {line}" for line in card["caveats"]), ""]
    for file, (caption, figure) in plot_card(card, latents).items():
        figure.savefig(folder / file, dpi=110, bbox_inches="tight")
        lines += [f"## {caption}", "", f"![{caption}]({file})", ""]
    page = folder / "CARD.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page
