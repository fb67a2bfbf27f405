"""Intervals of means, shares and rates against known values."""

from __future__ import annotations

import pytest
import torch

from pretrain.evaluation.intervals import interval, rate_interval, share_interval


def test_the_interval_of_a_mean_shrinks_with_the_root_of_n():
    x = torch.tensor([0.0, 1.0]).repeat(50)
    few = interval(x)
    many = interval(x.repeat(4))
    assert few["n"] == 100
    assert few["interval"][0] < few["mean"] == 0.5 < few["interval"][1]
    assert (few["interval"][1] - 0.5) / (many["interval"][1] - 0.5) > 1.9


def test_intervals_of_empty_data_are_null():
    nothing = {"n": 0, "mean": None, "interval": None}
    assert interval(torch.zeros(0)) == nothing
    assert rate_interval(0, 0.0, 0) == nothing
    assert interval(torch.ones(1)) == {"n": 1, "mean": 1.0, "interval": None}


def test_interval_of_few_values_uses_students_t():
    """Of 1, 2, 3: 2 +- 4.303 / sqrt(3)."""
    found = interval(torch.tensor([1.0, 2.0, 3.0]))["interval"]
    assert found == pytest.approx([2 - 2.4841, 2 + 2.4841], abs=1e-3)


def test_share_interval_of_0_or_1_is_the_wilson_interval():
    none = share_interval(torch.zeros(16))
    every = share_interval(torch.ones(16))
    assert none["interval"] == pytest.approx([0, 0.194], abs=1e-3)  # Wilson's 95 % of 0 in 16
    assert every["interval"] == pytest.approx([0.806, 1], abs=1e-3)
    assert share_interval(torch.zeros(0))["interval"] is None


def test_a_rate_has_the_exact_poisson_interval():
    """Garwood's limits of 0 and of 10 events, from the tables of the chi-squared distribution."""
    assert rate_interval(0, 2.0, 4)["interval"] == pytest.approx([0, 3.689 / 2], abs=1e-3)
    found = rate_interval(10, 1.0, 4)
    assert found["mean"] == 10
    assert found["interval"] == pytest.approx([4.795, 18.390], abs=1e-3)
