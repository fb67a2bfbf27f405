"""Export: a graph takes any number of rows, or is refused."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from pretrain.publishing.onnx_graph import export


class Shifted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ones(2).expand(x.shape[0], -1)


class ShiftedByLen(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.ones(2).expand(len(x), -1)


def test_a_graph_takes_any_number_of_rows() -> None:
    session = onnxruntime.InferenceSession(export(Shifted(), {"x": torch.zeros(3, 2)}, "y"))
    for rows in (1, 5):
        (y,) = session.run(["y"], {"x": np.zeros((rows, 2), np.float32)})
        assert np.array_equal(np.asarray(y), np.ones((rows, 2)))


def test_a_module_that_fixes_the_number_of_rows_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"takes 3 rows of x, expected any number: .*x\.shape\[0\]"
    ):
        export(ShiftedByLen(), {"x": torch.zeros(3, 2)}, "y")
