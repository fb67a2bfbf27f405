"""Reflections, and layers that commute with them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pretrain.rl.mirror import Mirror, Tie, beside, halves, unmoved, untied
from pretrain.rl.nets import mlp

FLIP = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
SWAP = Mirror(torch.tensor([1, 0, 2]), torch.tensor([1.0, 1.0, -1.0]))


@pytest.mark.parametrize("mirror", [FLIP, SWAP, halves(6), unmoved(4), beside(FLIP, SWAP), SWAP.repeated((2, 1, 0))])
def test_a_reflection_undoes_itself(mirror, rng):
    x = torch.randn(5, len(mirror), generator=rng)
    assert torch.equal(mirror(mirror(x)), x)


def test_blocks_trade_places():
    assert SWAP.repeated((1, 0))(torch.arange(6.0)).tolist() == [4, 3, -5, 1, 0, -2]


def test_a_net_commutes_with_its_reflections_and_learns_to_still(rng):
    net = mlp([6, 32, 16, 3], rng=rng, mirrored=(beside(FLIP, SWAP), SWAP))
    x, into = torch.randn(64, 6, generator=rng), beside(FLIP, SWAP)
    torch.testing.assert_close(net(into(x)), SWAP(net(x)))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        (net(x) - 1).square().mean().backward()
        optimizer.step()
    assert all(layer.bias.any() for layer in net if isinstance(layer, nn.Linear))
    torch.testing.assert_close(net(into(x)), SWAP(net(x)))


def test_the_way_back_is_the_adjoint_of_the_way_there(rng):
    """And so is the way back of that."""
    into, out = (Mirror(mirror.source, mirror.sign.double()) for mirror in (beside(FLIP, SWAP), SWAP))
    weight, bias = (torch.randn(n, generator=rng, dtype=torch.double, requires_grad=True) for n in ((3, 6), (3,)))
    assert torch.autograd.gradcheck(lambda w, b: Tie.apply(w, b, out, into), (weight, bias))
    assert torch.autograd.gradgradcheck(lambda w, b: Tie.apply(w, b, out, into), (weight, bias))


def test_it_starts_as_wide_as_a_plain_one(rng):
    x = torch.randn(512, 64, generator=rng)
    plain = mlp([64, 256, 256, 128], rng=rng)
    tied = mlp([64, 256, 256, 128], rng=rng, mirrored=(halves(64), halves(128)))
    with torch.no_grad():
        assert float(tied(x).std()) == pytest.approx(float(plain(x).std()), rel=0.1)


def test_untied_it_is_plain_and_computes_the_same(rng):
    net = mlp([6, 16, 3], rng=rng, mirrored=(beside(FLIP, SWAP), SWAP))
    x = torch.randn(9, 6, generator=rng)
    expected = net(x)
    plain = untied(net)
    assert all(type(layer) in (nn.Linear, nn.ReLU) for layer in plain.children())
    torch.testing.assert_close(plain(x), expected)
