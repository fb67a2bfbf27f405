"""Replay: rows of earlier batches, the oldest overwritten first."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from pretrain.rl.rollout import Batch


class Replay:
    """The last `size` rows of named columns; shape and type of each are those of its example
    row."""

    def __init__(self, size: int, **example: Tensor):
        self.rows = {name: x.new_zeros(size, *x.shape) for name, x in example.items()}
        self.size = size
        self.filled = 0
        self.next = 0

    def add(self, **rows: Tensor) -> None:
        """Rows (n, ...) of every column; if there are more than `size`, the first of them."""
        n = min(len(next(iter(rows.values()))), self.size)
        slots = (self.next + torch.arange(n)) % self.size
        for name, x in rows.items():
            self.rows[name][slots] = x[:n]
        self.next = (self.next + n) % self.size
        self.filled = min(self.filled + n, self.size)

    def sample(self, n: int, rng: Generator) -> Batch:
        """Rows (n, ...), drawn with replacement; no rows from an empty replay."""
        rows = torch.randint(max(self.filled, 1), (n if self.filled else 0,), generator=rng)
        return {name: x.index_select(0, rows) for name, x in self.rows.items()}

    def snapshot(self) -> dict[str, Tensor]:
        return {
            **{name: x[: self.filled].clone() for name, x in self.rows.items()},
            "next": torch.tensor(self.next),
        }

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.next = int(snapshot["next"])
        for name, x in self.rows.items():
            self.filled = len(snapshot[name])
            x[: self.filled] = snapshot[name]
