"""Operations of reflection-equivariant networks other than matrix products, compiled: `PairSums` of
`pretrain/rl/mirror.py` and `apply_relu` of `pretrain/rl/mirror_net.py`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pretrain.compiled.kernel import compile_kernel

F = np.float32


def relu_in_parts(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Twice the parts of the ReLU of the vectors with parts `even` and `odd` (..., n); and a byte
    of which halves are positive (..., n): 1 the left, 2 the right."""
    positive = torch.empty(even.shape, dtype=torch.uint8)
    parts = (torch.empty_like(even), torch.empty_like(even))
    _relu(_rows(even), _rows(odd), *map(_rows, parts), _rows(positive))
    return *parts, positive


def threshold_in_parts(even: Tensor, odd: Tensor, positive: Tensor) -> tuple[Tensor, Tensor]:
    """Twice the parts of a vector with parts `even` and `odd` (..., n), 0 where not `positive`."""
    parts = (torch.empty_like(even), torch.empty_like(even))
    _threshold(_rows(even), _rows(odd), _rows(positive), *map(_rows, parts))
    return parts


def _rows(x: Tensor) -> np.ndarray:
    return x.detach().view(-1).numpy()


@compile_kernel
def _relu(even, odd, out_even, out_odd, positive) -> None:
    for i in range(len(even)):
        left = even[i] + odd[i]
        right = even[i] - odd[i]
        kept_left = F(0) if left <= 0 else left  # NaN is kept
        kept_right = F(0) if right <= 0 else right
        out_even[i] = kept_left + kept_right
        out_odd[i] = kept_left - kept_right
        positive[i] = np.uint8(not left <= 0) + 2 * np.uint8(not right <= 0)


@compile_kernel
def _threshold(even, odd, positive, out_even, out_odd) -> None:
    for i in range(len(even)):
        left = even[i] + odd[i] if positive[i] & 1 else F(0)
        right = even[i] - odd[i] if positive[i] & 2 else F(0)
        out_even[i] = left + right
        out_odd[i] = left - right


def sum_pairs(x: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """weight[k, 0] * x[..., index[k, 0]] + weight[k, 1] * x[..., index[k, 1]] for each k: (..., n),
    (m, 2), (m, 2) -> (..., m)."""
    sums = torch.empty(*x.shape[:-1], len(index))
    rows = x.detach().view(-1, x.shape[-1]).numpy()
    _sum_pairs(rows, index.numpy(), weight.numpy(), sums.view(-1, len(index)).numpy())
    return sums


@compile_kernel
def _sum_pairs(rows, index, weight, sums) -> None:
    for n in range(len(rows)):
        row = rows[n]
        for k in range(len(index)):
            first = weight[k, 0] * row[index[k, 0]]
            sums[n, k] = first + weight[k, 1] * row[index[k, 1]]
