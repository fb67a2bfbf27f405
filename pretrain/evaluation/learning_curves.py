"""Learning curves: a run's log in few points, and their plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib as mpl

mpl.use("Agg")  # a display is rarely at hand
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from pretrain.rl.learner import Scalars

Curves = dict[str, list[float]]
ENDS = {"samples": (1e6, "million samples"), "seconds": (60, "minutes")}  # unit and label
CURVES = ("episode/length", "reward/style", "reward/skill", "assist")
POINTS = 100  # of a curve


def learning(rows: Sequence[Scalars]) -> Curves:
    """The rows of a run's log in at most POINTS parts: `samples` and `seconds` at the end of each,
    the means of CURVES over it.

    A curve that some row lacks, or that is not finite somewhere, is left out.
    """
    parts = np.array_split(np.arange(len(rows)), min(POINTS, max(len(rows), 1)))
    curves = {}
    for name in ENDS:
        if _finite(rows, name):
            curves[name] = [rows[part[-1]][name] for part in parts]
    for name in CURVES:
        if _finite(rows, name):
            values = np.array([row[name] for row in rows])
            curves[name] = [float(values[part].mean()) for part in parts]
    return {name: [float(f"{x:.6g}") for x in values] for name, values in curves.items()}


def _finite(rows: Sequence[Scalars], name: str) -> bool:
    return bool(rows) and all(math.isfinite(row.get(name, math.nan)) for row in rows)


def plot_learning(curves: Mapping[str, Sequence[float]]) -> Figure:
    """A row a curve, a column each for samples and seconds."""
    shown = [name for name in CURVES if name in curves]
    along = [name for name in ENDS if name in curves]
    figure, panels = plt.subplots(
        len(shown),
        len(along),
        figsize=(4.5 * len(along), 1.6 * len(shown)),
        sharex="col",
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for column, end in zip(panels.T, along, strict=True):
        unit, label = ENDS[end]
        for axes, name in zip(column, shown, strict=True):
            marker = "." if len(curves[name]) < POINTS else ""
            at = np.array(curves[end]) / unit
            axes.plot(at, curves[name], lw=1, marker=marker, color="#4878a8")
        column[-1].set_xlabel(label)
    for axes, name in zip(panels[:, 0], shown, strict=True):
        axes.set_ylabel(name, fontsize=8)
    return figure
