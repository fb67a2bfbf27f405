"""Distance matrices a block of rows at a time, so that memory does not grow with the square of a
clip's length."""

from __future__ import annotations

from torch import Tensor

MAX_DISTANCES = 2**24  # of one block: 64 MiB


def row_blocks(rows: Tensor, columns: int, most: int = MAX_DISTANCES) -> tuple[Tensor, ...]:
    """`rows` (n, ...) in consecutive blocks whose distances to `columns` others number at most
    `most`."""
    return rows.split(max(1, most // max(columns, 1)))
