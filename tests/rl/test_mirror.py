"""Reflections, and their even and odd parts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.rl.mirror import (
    Mirror,
    SymmetryBasis,
    concatenate_mirrors,
    make_half_swap,
    make_identity_mirror,
)

FLIP = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
SWAP = Mirror(torch.tensor([1, 0, 2]), torch.tensor([1.0, 1.0, -1.0]))
CROSS = Mirror(torch.tensor([1, 0]), torch.tensor([-1.0, -1.0]))
ALL = [
    FLIP,
    SWAP,
    CROSS,
    make_half_swap(6),
    make_identity_mirror(4),
    concatenate_mirrors(FLIP, CROSS, SWAP),
    SWAP.repeat_blocks((2, 1, 0)),
]


@pytest.mark.parametrize("mirror", ALL)
def test_a_reflection_undoes_itself(mirror, rng):
    x = torch.randn(5, len(mirror), generator=rng)
    assert torch.equal(mirror(mirror(x)), x)


def test_repeat_blocks_permutes_the_blocks():
    assert SWAP.repeat_blocks((1, 0))(torch.arange(6.0)).tolist() == [4, 3, -5, 1, 0, -2]


@pytest.mark.parametrize("mirror", ALL)
def test_reflection_keeps_even_parts_and_negates_odd_parts(mirror, rng):
    axes = SymmetryBasis.from_mirror(mirror)
    x = torch.randn(2, 5, len(mirror), generator=rng)
    even, odd = axes.split(x)
    image_even, image_odd = axes.split(mirror(x))
    assert even.shape[-1] + odd.shape[-1] == len(mirror)
    torch.testing.assert_close((image_even, image_odd), (even, -odd))
    torch.testing.assert_close(even.square().sum() + odd.square().sum(), x.square().sum())
    torch.testing.assert_close(axes.join(even, odd), x)


def test_split_and_join_pass_first_and_second_gradcheck(rng):
    axes = SymmetryBasis.from_mirror(concatenate_mirrors(FLIP, CROSS, SWAP))
    to_parts = replace(axes.to_parts, weight=axes.to_parts.weight.double())
    from_parts = replace(axes.from_parts, weight=axes.from_parts.weight.double())
    axes = replace(axes, to_parts=to_parts, from_parts=from_parts)
    x = torch.randn(2, 8, generator=rng, dtype=torch.double, requires_grad=True)
    even, odd = (
        torch.randn(2, n, generator=rng, dtype=torch.double, requires_grad=True)
        for n in (axes.num_even, axes.num_odd)
    )
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(axes.split, (x,))
        assert check(axes.join, (even, odd))
