"""Compiled interpolation of states matches that of torch."""

from __future__ import annotations

import torch

from pretrain.compiled import states as compiled
from pretrain.motion import library


def test_compiled_blend_matches_torch(monkeypatch, rng):
    """For distant states, near ones, and equal rotations of opposite sign."""
    earlier = torch.randn(60, 21, generator=rng)
    later = torch.randn(60, 21, generator=rng)
    later[20:40] = earlier[20:40] + 1e-6 * later[20:40]
    later[40:, 3:7] = -earlier[40:, 3:7]
    for frames in (earlier, later):
        frames[:, 3:7] /= frames[:, 3:7].norm(dim=-1, keepdim=True)
    shares = torch.rand(60, generator=rng)
    actual = compiled.blend_states(earlier, later, shares)
    monkeypatch.setattr(library, "is_compiled", lambda: False)
    expected = library.blend_states(earlier, later, shares)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=2e-6)
