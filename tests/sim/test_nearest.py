"""The nearest row within a group matches a full distance matrix."""

from __future__ import annotations

import pytest
import torch

from pretrain.sim.nearest import NearestRows

COUNTS = torch.tensor([4, 1, 30, 7])


def random_rows(n: int) -> torch.Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(n))


@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 2, 0], [2, 2, 2], [3], []])
def test_the_nearest_row_is_that_of_all_distances_within_the_group(groups):
    rows = random_rows(int(COUNTS.sum()))
    points = random_rows(len(groups))
    of_row = torch.arange(len(COUNTS)).repeat_interleave(COUNTS)
    groups = torch.tensor(groups, dtype=torch.long)
    distances = torch.cdist(points, rows).masked_fill(of_row != groups[:, None], torch.inf)
    assert torch.equal(NearestRows(rows, COUNTS).find(points, groups), distances.argmin(1))
