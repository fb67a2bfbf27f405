"""The plots of a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from pretrain.evaluation.card import Card, Latents
from pretrain.evaluation.learning_curves import CURVES, ENDS, POINTS

BLUE = "#4878a8"
PALE = "#b8c8d8"
RED = "#a84832"


def plot_card(card: Card, latents: Latents) -> dict[str, tuple[str, Figure]]:
    """File name -> caption and figure, in the order of the page."""
    figures = {"clips.png": ("Each clip: time on it under its own z, and coverage", _clips(card))}
    if card["switch_success"]["matrix"]:
        caption = "Switch success, from the clip of the row to that of the column"
        figures["switches.png"] = (caption, _switches(card["switch_success"]["matrix"]))
    figures["latents.png"] = ("The clips' own z, on their two widest axes", _map(latents))
    curves = card.get("learning", {})
    if "samples" in curves and any(name in curves for name in CURVES):
        figures["learning.png"] = ("Learning", plot_learning(curves))
    return figures


def _clips(card: Card) -> Figure:
    on_clip = card["time_on_clip"]["per_clip"]
    covered = card["coverage_per_clip"]
    names = list(on_clip)
    places = np.arange(len(names))
    figure = Figure(figsize=(7, 0.4 * len(names) + 1))
    axes = figure.subplots()
    label = "windows passed at least once under random z"
    axes.barh(places + 0.2, [covered[name] for name in names], 0.35, color=PALE, label=label)
    label = "time within tolerance under its own z"
    axes.barh(places - 0.2, [on_clip[name] for name in names], 0.35, color=BLUE, label=label)
    axes.set_yticks(places, names)
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.set_xlabel("share")
    figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0), fontsize=8, ncols=2)
    return figure


def _switches(matrix: Mapping[str, Mapping[str, float]]) -> Figure:
    names = list(matrix)
    shares = [[matrix[start].get(target, np.nan) for target in names] for start in names]
    side = 0.45 * len(names) + 2
    figure = Figure(figsize=(side, side))
    axes = figure.subplots()
    axes.imshow(np.array(shares), vmin=0, vmax=1, cmap="Blues")
    for row, column in np.argwhere(~np.isnan(shares)):
        share = shares[row][column]
        color = "white" if share > 0.6 else "black"
        text = f"{share:.2f}".removeprefix("0") if share < 1 else "1"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(np.arange(len(names)), names, rotation=90)
    axes.set_yticks(np.arange(len(names)), names)
    return figure


def _map(latents: Latents) -> Figure:
    points = np.array(list(latents.values()))
    _, _, directions = np.linalg.svd(points - points.mean(0))  # full: one clip alone spans no axis
    flat = (points - points.mean(0)) @ directions[:2].T
    figure = Figure(figsize=(7, 6))
    axes = figure.subplots()
    axes.scatter(flat[:, 0], flat[:, 1], s=18, color=RED)
    places: dict[tuple[float, float], list[str]] = {}
    for name, (x, y) in zip(latents, flat.round(2).tolist(), strict=True):
        # a clip and its mirror image often coincide
        places.setdefault((x, y), []).append(name)
    upwards = sorted(places, key=lambda place: place[1])
    line = {"arrowstyle": "-", "color": "gray", "lw": 0.4, "relpos": (0, 0.5)}
    for height, place in zip(np.linspace(0.02, 0.98, len(upwards)), upwards, strict=True):
        axes.annotate(
            ", ".join(places[place]),
            place,
            xytext=(1.04, height),
            textcoords="axes fraction",
            va="center",
            fontsize=7,
            arrowprops=line,
        )
    axes.set_aspect("equal", adjustable="datalim")
    return figure


def plot_learning(curves: Mapping[str, Sequence[float]]) -> Figure:
    """One row per curve, one column each for samples and seconds."""
    shown = [name for name in CURVES if name in curves]
    along = [name for name in ENDS if name in curves]
    size = (4.5 * len(along), 1.6 * len(shown))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(shown), len(along), sharex="col", sharey="row", squeeze=False)
    for column, end in zip(panels.T, along, strict=True):
        unit, label = ENDS[end]
        for axes, name in zip(column, shown, strict=True):
            marker = "." if len(curves[name]) < POINTS else ""
            at = np.array(curves[end]) / unit
            axes.plot(at, curves[name], lw=1, marker=marker, color=BLUE)
        column[-1].set_xlabel(label)
    for axes, name in zip(panels[:, 0], shown, strict=True):
        axes.set_ylabel(name, fontsize=8)
    return figure
