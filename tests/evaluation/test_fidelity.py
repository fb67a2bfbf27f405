"""Fidelity: the Frechet distance in closed form, and the fidelity of the clips themselves."""

from __future__ import annotations

import pytest
import torch

from pretrain.ase.reference_windows import make_reference_windows
from pretrain.evaluation.fidelity import fidelity, fit_gaussian, frechet

WALK = 0


def distance(x: torch.Tensor, y: torch.Tensor) -> float:
    """Between the Gaussians fitted to rows."""
    unit = torch.ones(x.shape[1], dtype=x.dtype)
    return frechet(fit_gaussian(x, unit), fit_gaussian(y, unit))


def test_frechet_of_gaussians_is_the_closed_form(rng):
    x = torch.randn(200_000, 3, generator=rng, dtype=torch.float64)
    scale = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    shift = torch.tensor([3.0, 0.0, -1.0], dtype=torch.float64)
    y = torch.randn(200_000, 3, generator=rng, dtype=torch.float64) * scale + shift
    # diagonal covariances: |mu|^2 + sum (1 - s)^2
    expected = float(shift.square().sum() + (1 - scale).square().sum())
    assert distance(x, y) == pytest.approx(expected, rel=0.02)


def test_frechet_is_zero_to_self_symmetric_rotation_invariant(rng):
    x = torch.randn(500, 6, generator=rng)
    y = 2 * torch.randn(400, 6, generator=rng) + 1
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=rng))
    assert distance(x, x) == pytest.approx(0, abs=1e-6)
    assert distance(x, y) == pytest.approx(distance(y, x), rel=1e-6)
    assert distance(x @ turn, y @ turn) == pytest.approx(distance(x, y), rel=1e-4)


def test_frechet_works_with_fewer_rows_than_features(rng):
    assert distance(torch.randn(5, 20, generator=rng), torch.randn(5, 20, generator=rng)) > 0


def test_gaussian_fit_of_many_rows_matches_mean_and_covariance(rng):
    x = torch.randn(20_000, 4, generator=rng, dtype=torch.float64)
    fitted = fit_gaussian(x, torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(fitted.mean, x.mean(0))
    torch.testing.assert_close(fitted.covariance, x.T.cov())


def test_fidelity_is_near_zero_for_clips_and_large_for_noise(training_data, skeleton, rng):
    demos = make_reference_windows(training_data.library, skeleton, 3)
    scale = demos.windows.std(0).clamp_min(0.03)
    noisy = demos.windows + scale * torch.randn(demos.windows.shape, generator=rng)
    itself = fidelity(demos.windows, demos, scale)
    rough = fidelity(noisy, demos, scale)
    one = fidelity(demos.windows[demos.clip == WALK], demos, scale)
    assert itself is not None
    assert rough is not None
    assert one is not None
    assert itself < 0.01
    assert rough > 1
    assert one > 0.5
    assert fidelity(demos.windows[:0], demos, scale) is None
