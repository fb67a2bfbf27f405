"""Learning curves: a run's log, downsampled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pretrain.rl.learner import Scalars

Curves = dict[str, list[float]]
ENDS = {"samples": (1e6, "million samples"), "seconds": (60, "minutes")}  # unit and label
CURVES = ("episode/length", "reward/style", "reward/skill", "assist")
POINTS = 100  # of a curve


def learning(rows: Sequence[Scalars]) -> Curves:
    """The rows of a run's log in at most POINTS parts: `samples` and `seconds` at the end of each,
    the means of CURVES over it.

    Curves with missing or non-finite rows are left out."""
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
