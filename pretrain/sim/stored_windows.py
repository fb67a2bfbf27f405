"""Stored style windows: row indices and tracking errors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import vector_norm

from pretrain.compiled.kernel import can_read, is_compiled


def window_error(windows: Tensor, scale: Tensor, stored: Tensor, rows: Tensor) -> Tensor:
    """Root mean square over features of windows (N, D) / `scale` (D,) - `stored`[`rows`], in the
    shape of `rows`, (N,) or (N, K). `stored` (M, D) is in units of `scale`."""
    if is_compiled() and can_read(windows, scale, stored):
        from pretrain.compiled.windows import window_error as compiled

        return compiled(windows, scale, stored, rows)
    scaled = windows / scale
    columns = (rows,) if rows.ndim == 1 else rows.unbind(-1)
    errors = [vector_norm(scaled - stored.index_select(0, each), dim=-1) for each in columns]
    return torch.stack(errors, -1).view(rows.shape) / windows.shape[-1] ** 0.5


def find_rows(first: Tensor, counts: Tensor, clips: Tensor, times: Tensor, rate: float) -> Tensor:
    """The rows of clips (N,) at `times` (N,) s, or their last ones, (N,).

    Clip c has `counts[c]` rows from `first[c]` on, `rate` of them a second."""
    if is_compiled() and can_read(times):
        from pretrain.compiled.windows import find_rows as compiled

        return compiled(first, counts, clips, times, rate)
    return first[clips] + (times * rate).round().long().minimum(counts[clips] - 1)
