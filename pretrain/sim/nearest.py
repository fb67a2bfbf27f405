"""Nearest rows of features: each point is compared only with the rows of its group."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.sim.row_blocks import row_blocks


class NearestRows:
    """Concatenated rows (M, D) of C groups, `counts` (C,) of each.

    Comparing with the rows of all groups would take C times as long."""

    def __init__(self, rows: Tensor, counts: Tensor):
        self.rows = rows
        self._first = torch.cumsum(counts, 0) - counts
        self._groups = rows.split(counts.tolist())
        self._half_squares = (0.5 * rows.square().sum(-1)).split(counts.tolist())

    def find(self, points: Tensor, groups: Tensor) -> Tensor:
        """For points (n, D), the index of the nearest row of their `groups` (n,), (n,)."""
        order = groups.argsort(stable=True)
        sizes = torch.bincount(groups, minlength=len(self._groups)).tolist()
        indices = [
            self._find_in(group, part)
            for group, part in enumerate(points.index_select(0, order).split(sizes))
            if len(part)
        ]
        nearest = torch.empty_like(groups)
        nearest[order] = torch.cat([*indices, groups[:0]])
        return nearest

    def _find_in(self, group: int, points: Tensor) -> Tensor:
        """For points (n, D), the index of the nearest row of one group, (n,)."""
        rows = self._groups[group]
        indices: list[Tensor] = []
        for block in row_blocks(points, len(rows)):
            # half the squared distance, without the points' squares, equal for all rows
            scores = torch.addmm(self._half_squares[group], block, rows.T, alpha=-1)
            indices.append(scores.argmin(1))
        return self._first[group] + torch.cat(indices)
