"""Measures with known answers."""

from __future__ import annotations

import pytest
import torch

from pretrain.evaluation.measures import aligned_error, frechet, interval, jerk, pair_distances, share_interval


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_frechet_of_gaussians_is_the_closed_form(rng):
    x = torch.randn(200_000, 3, generator=rng, dtype=torch.float64)
    scale, shift = (
        torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64),
        torch.tensor([3.0, 0.0, -1.0], dtype=torch.float64),
    )
    y = torch.randn(200_000, 3, generator=rng, dtype=torch.float64) * scale + shift
    # diagonal covariances: |mu|^2 + sum (1 - s)^2
    expected = float(shift.square().sum() + (1 - scale).square().sum())
    assert frechet(x, y) == pytest.approx(expected, rel=0.02)


def test_frechet_is_nothing_to_itself_symmetric_and_blind_to_rotation(rng):
    x = torch.randn(500, 6, generator=rng)
    y = 2 * torch.randn(400, 6, generator=rng) + 1
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=rng))
    assert frechet(x, x) == pytest.approx(0, abs=1e-6)
    assert frechet(x, y) == pytest.approx(frechet(y, x), rel=1e-6)
    assert frechet(x @ turn, y @ turn) == pytest.approx(frechet(x, y), rel=1e-4)


def test_frechet_takes_fewer_rows_than_features(rng):
    assert frechet(torch.randn(5, 20, generator=rng), torch.randn(5, 20, generator=rng)) > 0


def distances(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.cdist(a[:, None], b[:, None])


def test_alignment_forgives_time_and_not_shape():
    wave = torch.sin(torch.linspace(0, 6.28, 40))
    slow = torch.sin(torch.linspace(0, 6.28, 80))
    assert aligned_error(distances(wave, wave)) == 0
    assert aligned_error(distances(wave, slow)) < 0.05
    assert aligned_error(distances(wave, slow + 1)) > 0.3
    assert aligned_error(distances(wave, torch.zeros(40))) == pytest.approx(float(wave.abs().mean()), rel=0.2)


def test_alignment_takes_the_cheapest_path():
    cost = torch.tensor([[1.0, 9.0, 9.0], [1.0, 1.0, 9.0], [9.0, 9.0, 1.0]])
    assert aligned_error(cost) == pytest.approx(1.0)


def test_jerk_of_a_polynomial_is_its_third_derivative():
    t = torch.arange(30, dtype=torch.float64) / 30
    motion = torch.stack([t**3, 2 * t**2, t], -1)[:, None]  # third derivatives 6, 0, 0
    assert jerk(motion, 30.0).tolist() == pytest.approx([2.0], rel=1e-6)


def test_alignment_takes_many_matrices_at_once(rng):
    costs = torch.rand(2, 3, 7, 5, generator=rng)
    each = [[float(aligned_error(matrix)) for matrix in row] for row in costs]
    torch.testing.assert_close(aligned_error(costs).float(), torch.tensor(each))


def test_the_distance_of_rollouts_forgives_being_out_of_step():
    wave = torch.sin(torch.linspace(0, 25, 60))[:, None]
    late = torch.sin(torch.linspace(-1, 24, 60))[:, None]
    assert float(pair_distances(torch.stack([wave, late]))) < 0.3 * float((wave - late).abs().mean())


def test_rollouts_have_a_distance_a_pair():
    still = torch.zeros(3, 5, 2)
    assert not pair_distances(still).any()
    apart = still + torch.tensor([0.0, 3.0, 6.0])[:, None, None] * torch.tensor([1.0, 0.0])
    assert sorted(pair_distances(apart).tolist()) == pytest.approx([3, 3, 6])


def test_the_interval_of_a_mean_shrinks_with_the_root_of_n():
    x = torch.tensor([0.0, 1.0]).repeat(50)
    few, many = interval(x), interval(x.repeat(4))
    assert few["n"] == 100
    assert few["interval"][0] < few["mean"] == 0.5 < few["interval"][1]
    assert (few["interval"][1] - 0.5) / (many["interval"][1] - 0.5) > 1.9


def test_nothing_to_average_is_null_and_never_nan():
    assert interval(torch.zeros(0)) == {"n": 0, "mean": None, "interval": None}
    assert interval(torch.ones(1))["interval"] == [1.0, 1.0]


def test_a_share_of_none_or_all_is_not_known_exactly():
    none, all_ = share_interval(torch.zeros(16)), share_interval(torch.ones(16))
    assert none["interval"] == pytest.approx([0, 0.194], abs=1e-3)  # Wilson's 95 % of 0 in 16
    assert all_["interval"] == pytest.approx([0.806, 1], abs=1e-3)
    assert share_interval(torch.zeros(0))["interval"] is None
