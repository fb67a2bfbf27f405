"""Rows are split into blocks of bounded size."""

from __future__ import annotations

import pytest
import torch

from pretrain.sim.row_blocks import row_blocks


@pytest.mark.parametrize("most", [1, 7, 30, 1000])
def test_blocks_are_all_rows_in_their_order_and_bounded(most):
    rows = torch.arange(10)
    blocks = row_blocks(rows, 3, most)
    torch.testing.assert_close(torch.cat(blocks), rows)
    assert all(len(block) == 1 or 3 * len(block) <= most for block in blocks)
