"""Distances of style windows from stored ones, compiled."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pretrain.compiled.kernel import compile_kernel


def window_error(windows: Tensor, scale: Tensor, stored: Tensor, rows: Tensor) -> Tensor:
    """As `window_error` of `pretrain/sim/stored_windows.py`."""
    assert len(windows) == len(rows)  # the kernel checks no bounds
    errors = torch.empty(rows.shape)
    columns = (rows, errors) if rows.ndim == 2 else (rows[:, None], errors[:, None])
    row_indices, out = (x.numpy() for x in columns)
    _write_errors(windows.numpy(), (1 / scale).numpy(), stored.numpy(), row_indices, out)
    return errors


@compile_kernel
def _write_errors(
    windows: np.ndarray, factors: np.ndarray, stored: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> None:
    width = windows.shape[1]
    for n in range(len(windows)):
        window = windows[n]
        for k in range(rows.shape[1]):
            row = stored[rows[n, k]]
            total = np.float32(0)
            for i in range(width):
                off = window[i] * factors[i] - row[i]
                total += off * off
            out[n, k] = math.sqrt(total / np.float32(width))


def find_rows(first: Tensor, counts: Tensor, clips: Tensor, times: Tensor, rate: float) -> Tensor:
    """As `find_rows` of `pretrain/sim/stored_windows.py`."""
    rows = torch.empty(clips.shape, dtype=torch.long)
    steps = (times * rate).numpy()
    _write_rows(first.numpy(), counts.numpy(), clips.numpy(), steps, rows.numpy())
    return rows


@compile_kernel
def _write_rows(
    first: np.ndarray, counts: np.ndarray, clips: np.ndarray, steps: np.ndarray, rows: np.ndarray
) -> None:
    for n in range(len(rows)):
        clip = clips[n]
        row = np.int64(np.rint(steps[n]))
        rows[n] = first[clip] + max(min(row, counts[clip] - 1), 0)
