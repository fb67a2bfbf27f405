"""GAE by hand: what a termination, a truncation and the horizon's end are worth."""

from __future__ import annotations

import torch

from pretrain.rl.returns import gae

GAMMA, LAM = 0.9, 0.8


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def flags(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)[:, None]


def test_by_hand():
    reward, value, after = column(1, 2, 3), column(0.5, 0.6, 0.7), column(0.6, 0.7, 0.8)
    never = flags(0, 0, 0)
    d2 = 3 + GAMMA * 0.8 - 0.7
    d1 = 2 + GAMMA * 0.7 - 0.6
    d0 = 1 + GAMMA * 0.6 - 0.5
    expected = column(d0 + 0.72 * (d1 + 0.72 * d2), d1 + 0.72 * d2, d2)
    torch.testing.assert_close(gae(reward, value, after, never, never, GAMMA, LAM), expected)


def test_a_fall_is_worth_nothing_afterwards():
    got = gae(column(1, 1), column(0, 0), column(50, 50), flags(1, 0), flags(0, 0), GAMMA, LAM)
    assert got[0] == 1


def test_a_timeout_bootstraps_from_the_true_next_state():
    got = gae(column(1, 1), column(0, 0), column(50, 7), flags(0, 0), flags(1, 0), GAMMA, LAM)
    torch.testing.assert_close(got[0], torch.tensor([1 + GAMMA * 50]))


def test_no_advantage_leaks_into_the_episode_before():
    calm, wild = column(1, 0), column(1, 1000)
    ended = flags(0, 0)
    for terminated, truncated in ((flags(1, 0), ended), (ended, flags(1, 0))):
        args = (column(0, 0), column(0, 0), terminated, truncated, GAMMA, LAM)
        assert gae(calm, *args)[0] == gae(wild, *args)[0]


def test_lambda_one_and_zero_value_is_the_discounted_sum():
    reward, zero, never = column(1, 2, 4), column(0, 0, 0), flags(0, 0, 0)
    got = gae(reward, zero, zero, never, never, 0.5, 1.0)
    torch.testing.assert_close(got, column(3.0, 4.0, 4.0))
