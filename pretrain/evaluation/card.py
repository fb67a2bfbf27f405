"""The card as files: card.json for programs, CARD.md with plots for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # a display is rarely at hand
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pretrain.rl.learner import Scalars

Card = dict[str, Any]
ENDS = {"samples": (1e6, "million samples"), "seconds": (60, "minutes")}  # drawn along, unit, label
CURVES = ("episode/length", "reward/style", "reward/skill", "assist")
POINTS = 100  # of a curve
COVERED = 0.6  # from here on PRESET=all counts a clip as covered


def learning(rows: Sequence[Scalars]) -> dict[str, list[float]]:
    """The rows of a run's log in at most POINTS parts: `samples` and `seconds` at the end of each, the means of CURVES over it.

    A curve that some row lacks, or that is not finite somewhere, is left out.
    """

    def finite(name: str) -> bool:
        return bool(rows) and all(math.isfinite(row.get(name, math.nan)) for row in rows)

    parts = np.array_split(np.arange(len(rows)), min(POINTS, max(len(rows), 1)))
    ends = {name: [rows[part[-1]][name] for part in parts] for name in ENDS if finite(name)}
    means = {name: [float(np.mean([rows[i][name] for i in part])) for part in parts] for name in CURVES if finite(name)}
    return {name: [float(f"{x:.6g}") for x in values] for name, values in (ends | means).items()}


def write_card(
    folder: Path,
    ref: str,
    text: str,
    card: Card,
    latents: Mapping[str, Sequence[float]],
) -> Path:
    """`text` is the table for people, `latents` the clips' embeddings. -> CARD.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    pictures = {
        "coverage.png": ("Coverage of each clip under random skills", _coverage(card)),
        "latents.png": ("The clips' embeddings, on their two widest axes", _map(latents)),
        "falls.png": (
            "When episodes under random skills end in a fall (who is up again in time has not fallen)",
            _falls(card),
        ),
    }
    if "samples" in card.get("learning", {}) and any(name in card["learning"] for name in CURVES):
        pictures["learning.png"] = ("Learning", _learning(card["learning"]))
    lines = [f"# {ref}", "", "```", text, "```", ""]
    lines += ["## What is thin", "", *(f"- {line}" for line in card["caveats"]), ""] if card["caveats"] else []
    for file, (caption, figure) in pictures.items():
        figure.savefig(folder / file, dpi=110, bbox_inches="tight")
        plt.close(figure)
        lines += [f"## {caption}", "", f"![{caption}]({file})", ""]
    page = folder / "CARD.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def _coverage(card: Card) -> Figure:
    names, shares = list(card["coverage_per_clip"]), list(card["coverage_per_clip"].values())
    figure, axes = plt.subplots(figsize=(7, 0.3 * len(names) + 1))
    axes.barh(names, shares, color="#4878a8")
    axes.axvline(COVERED, color="grey", lw=0.8, ls="--")
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.set_xlabel(f"share of the clip's windows that a rollout passed within tau of; dashed: {COVERED:g}")
    return figure


def _map(latents: Mapping[str, Sequence[float]]) -> Figure:
    points = np.array(list(latents.values()))
    _, _, axes_of = np.linalg.svd(points - points.mean(0))  # all of them: one clip alone spans none
    flat = (points - points.mean(0)) @ axes_of[:2].T
    figure, axes = plt.subplots(figsize=(7, 6))
    axes.scatter(flat[:, 0], flat[:, 1], s=18, color="#a84832")
    places: dict[tuple[float, float], list[str]] = {}
    for name, (x, y) in zip(latents, flat.round(2).tolist(), strict=True):
        places.setdefault((x, y), []).append(name)  # a clip and its mirror image often lie on each other
    upwards = sorted(places, key=lambda at: at[1])
    line = {"arrowstyle": "-", "color": "grey", "lw": 0.4, "relpos": (0, 0.5)}
    for height, at in zip(np.linspace(0.02, 0.98, len(upwards)), upwards, strict=True):
        beside = {"xytext": (1.04, height), "textcoords": "axes fraction", "va": "center", "fontsize": 7}
        axes.annotate(", ".join(places[at]), at, arrowprops=line, **beside)
    axes.set_aspect("equal", adjustable="datalim")
    return figure


def _falls(card: Card) -> Figure:
    counts = card["detail"]["falls_per_second"]
    figure, axes = plt.subplots(figsize=(7, 2.5))
    axes.bar(np.arange(len(counts)) + 0.5, counts, width=0.9, color="#4878a8")
    axes.set_xlabel("s after the start")
    axes.set_ylabel(f"ends of {card['detail']['survival']['n']} episodes")
    return figure


def _learning(curves: Mapping[str, Sequence[float]]) -> Figure:
    shown, along = [name for name in CURVES if name in curves], [name for name in ENDS if name in curves]
    size = (4.5 * len(along), 1.6 * len(shown))
    figure, panels = plt.subplots(
        len(shown), len(along), figsize=size, sharex="col", sharey="row", squeeze=False, layout="constrained"
    )
    for column, end in zip(panels.T, along, strict=True):
        unit, text = ENDS[end]
        for axes, name in zip(column, shown, strict=True):
            few = len(curves[name]) < POINTS
            axes.plot(np.array(curves[end]) / unit, curves[name], lw=1, marker="." if few else "", color="#4878a8")
        column[-1].set_xlabel(text)
    for axes, name in zip(panels[:, 0], shown, strict=True):
        axes.set_ylabel(name, fontsize=8)
    return figure
