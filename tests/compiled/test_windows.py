"""Compiled distances of windows, and their rows, match those of torch."""

from __future__ import annotations

import pytest
import torch

from pretrain.compiled import windows as compiled
from pretrain.sim import stored_windows


@pytest.fixture
def torch_only(monkeypatch):
    """Use the reference functions instead of the compiled ones."""
    monkeypatch.setattr(stored_windows, "is_compiled", lambda: False)


@pytest.mark.parametrize("shape", [(50,), (50, 3), (0,), (0, 3)])
def test_compiled_window_error_matches_torch(torch_only, rng, shape):
    windows = torch.randn(shape[0], 37, generator=rng)
    scale = 0.1 + torch.rand(37, generator=rng)
    stored = torch.randn(20, 37, generator=rng)
    rows = torch.randint(20, shape, generator=rng)
    expected = stored_windows.window_error(windows, scale, stored, rows)
    actual = compiled.window_error(windows, scale, stored, rows)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


def test_a_window_is_no_distance_from_itself(rng):
    windows = torch.randn(4, 37, generator=rng)
    errors = compiled.window_error(windows, torch.ones(37), windows, torch.arange(4))
    assert errors.tolist() == [0, 0, 0, 0]


def test_compiled_find_rows_matches_torch(torch_only):
    first = torch.tensor([0, 10])
    counts = torch.tensor([10, 4])
    clips = torch.tensor([0, 0, 0, 1, 1])
    times = torch.tensor([0.0, 0.25, 99.0, 0.05, 0.15])
    rows = [0, 2, 9, 10, 12]  # halves go to the even row
    assert compiled.find_rows(first, counts, clips, times, 10.0).tolist() == rows
    assert stored_windows.find_rows(first, counts, clips, times, 10.0).tolist() == rows
