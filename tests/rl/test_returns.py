"""GAE by hand: the return after a termination, a truncation and the end of the horizon."""

from __future__ import annotations

import torch

from pretrain.rl.returns import Discount, combine_advantages, gae

GAMMA = 0.9
LAM = 0.8
DISCOUNT = Discount(GAMMA, LAM)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values)[:, None, None]  # (T, 1, 1)


def flags(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)[:, None]


def test_gae_matches_a_hand_computed_example():
    reward = column(1, 2, 3)
    value = column(0.5, 0.6, 0.7)
    after = column(0.6, 0.7, 0.8)
    never = flags(0, 0, 0)
    d2 = 3 + GAMMA * 0.8 - 0.7
    d1 = 2 + GAMMA * 0.7 - 0.6
    d0 = 1 + GAMMA * 0.6 - 0.5
    expected = column(d0 + 0.72 * (d1 + 0.72 * d2), d1 + 0.72 * d2, d2)
    torch.testing.assert_close(gae(reward, value, after, never, never, discount=DISCOUNT), expected)


def test_the_return_after_a_termination_is_zero():
    got = gae(
        column(1, 1), column(0, 0), column(50, 50), flags(1, 0), flags(0, 0), discount=DISCOUNT
    )
    assert got[0] == 1


def test_a_timeout_bootstraps_from_the_true_next_state():
    got = gae(
        column(1, 1), column(0, 0), column(50, 7), flags(0, 0), flags(1, 0), discount=DISCOUNT
    )
    torch.testing.assert_close(got[0], torch.tensor([[1 + GAMMA * 50]]))


def test_advantages_do_not_leak_across_episode_ends():
    calm = column(1, 0)
    wild = column(1, 1000)
    ended = flags(0, 0)
    for terminated, truncated in ((flags(1, 0), ended), (ended, flags(1, 0))):
        args = (column(0, 0), column(0, 0), terminated, truncated)
        assert gae(calm, *args, discount=DISCOUNT)[0] == gae(wild, *args, discount=DISCOUNT)[0]


def test_lambda_one_and_zero_value_is_the_discounted_sum():
    reward = column(1, 2, 4)
    zero = column(0, 0, 0)
    never = flags(0, 0, 0)
    got = gae(reward, zero, zero, never, never, discount=Discount(0.5, 1.0))
    torch.testing.assert_close(got, column(3.0, 4.0, 4.0))


def test_advantages_of_two_rewards_do_not_mix(rng):
    reward, value, after = torch.rand(3, 6, 4, 2, generator=rng)
    ended, cut = torch.rand(2, 6, 4, generator=rng) < 0.2
    both = gae(reward, value, after, ended, cut, discount=DISCOUNT)
    for index in range(2):
        first, second, third = (x[..., index, None] for x in (reward, value, after))
        alone = gae(first, second, third, ended, cut, discount=DISCOUNT)
        torch.testing.assert_close(both[..., index, None], alone)


def test_the_combined_advantage_is_that_of_the_weighted_sum(rng):
    reward, value, after = torch.rand(3, 6, 4, 2, generator=rng)
    never = torch.zeros(6, 4, dtype=torch.bool)
    weight = torch.tensor([3.0, 0.5])
    both = gae(reward, value, after, never, never, discount=DISCOUNT).flatten(0, 1)
    first, second, third = ((x * weight).sum(-1, keepdim=True) for x in (reward, value, after))
    total = gae(first, second, third, never, never, discount=DISCOUNT).flatten(0, 1)
    torch.testing.assert_close(
        combine_advantages(both, weight), combine_advantages(total, torch.ones(1))
    )


def test_normalized_advantages_do_not_depend_on_the_size_of_a_reward(rng):
    advantage = torch.randn(200, 2, generator=rng)
    std = advantage.std(0)
    size = torch.tensor([1.0, 50.0])
    weight = torch.tensor([0.5, 0.5])
    got = combine_advantages(advantage, weight, std)
    torch.testing.assert_close(got, combine_advantages(advantage * size, weight, std * size))
    assert got.mean().abs() < 0.05
    assert got.abs().max() <= 4
