"""The von Mises-Fisher bound against its closed form and published figures."""

from __future__ import annotations

import math

import pytest

from pretrain.evaluation.information import information_bound


def test_no_agreement_is_no_information():
    assert information_bound(0.0, 16) == 0.0
    assert information_bound(-0.3, 16) == 0.0


def test_information_bound_in_3_dimensions_is_the_closed_form():
    """There the normalizer is kappa / (4 pi sinh kappa), and the mean cosine coth k - 1 / k."""
    kappa = 5.0
    cosine = 1 / math.tanh(kappa) - 1 / kappa
    expected = kappa * cosine + math.log(kappa / math.sinh(kappa))
    assert information_bound(cosine, 3) == pytest.approx(expected, rel=1e-6)


def test_information_bound_grows_with_latent_dimension():
    bounds = [information_bound(0.6, dim) or 0.0 for dim in (2, 4, 8, 16, 64)]
    assert bounds == sorted(bounds)
    assert bounds[-1] > 10 * bounds[0]


@pytest.mark.parametrize(("cosine", "dim", "nats"), [(0.925, 4, 3.2), (0.638, 64, 16.6)])
def test_information_bound_matches_published_figures(cosine, dim, nats):
    assert information_bound(cosine, dim) == pytest.approx(nats, abs=0.05)


def test_information_bound_grows_with_cosine_and_stays_finite():
    bounds = [information_bound(cosine, 64) or 0.0 for cosine in (0.1, 0.5, 0.9, 0.99, 0.9999)]
    assert bounds == sorted(bounds)
    assert all(math.isfinite(bound) for bound in bounds)


def test_information_bound_is_none_in_1_dimension():
    assert information_bound(0.5, 1) is None
