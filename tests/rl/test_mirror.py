"""Reflections, and what they leave as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.rl.mirror import Mirror, Parts, beside, halves, unmoved

FLIP = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
SWAP = Mirror(torch.tensor([1, 0, 2]), torch.tensor([1.0, 1.0, -1.0]))


@pytest.mark.parametrize("mirror", [FLIP, SWAP, halves(6), unmoved(4), beside(FLIP, SWAP), SWAP.repeated((2, 1, 0))])
def test_a_reflection_undoes_itself(mirror, rng):
    x = torch.randn(5, len(mirror), generator=rng)
    assert torch.equal(mirror(mirror(x)), x)


def test_blocks_trade_places():
    assert SWAP.repeated((1, 0))(torch.arange(6.0)).tolist() == [4, 3, -5, 1, 0, -2]


@pytest.mark.parametrize("mirror", [FLIP, SWAP, halves(6), unmoved(4), beside(FLIP, SWAP), SWAP.repeated((2, 1, 0))])
def test_of_a_reflection_even_parts_stay_and_odd_ones_turn_around(mirror, rng):
    parts, x = Parts.of(mirror), torch.randn(2, 5, len(mirror), generator=rng)
    even, odd = parts.split(x)
    image_even, image_odd = parts.split(mirror(x))
    assert even.shape[-1] + odd.shape[-1] == len(mirror)
    torch.testing.assert_close((image_even, image_odd), (even, -odd))
    torch.testing.assert_close(even.square().sum() + odd.square().sum(), x.square().sum())
    torch.testing.assert_close(parts.join(even, odd), x)


def test_the_way_back_is_the_adjoint_of_the_way_there(rng):
    """And so is the way back of that."""
    parts = Parts.of(beside(FLIP, SWAP))
    parts = replace(parts, scale=parts.scale.double())
    x = torch.randn(2, 6, generator=rng, dtype=torch.double, requires_grad=True)
    even, odd = (
        torch.randn(2, n, generator=rng, dtype=torch.double, requires_grad=True) for n in (parts.even, parts.odd)
    )
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(parts.split, (x,))
        assert check(parts.join, (even, odd))
