"""Networks that commute with a reflection."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pretrain.rl.mirror import Mirror, Parts, beside, halves
from pretrain.rl.mirror_net import MirrorNet, fold, untied
from pretrain.rl.nets import mlp

FLIP = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
SWAP = Mirror(torch.tensor([1, 0, 2]), torch.tensor([1.0, 1.0, -1.0]))
BOTH = beside(FLIP, SWAP)


def test_a_net_commutes_with_its_reflections_and_learns_to_still(rng):
    net = mlp([6, 32, 16, 3], rng=rng, mirrored=(BOTH, SWAP))
    x = torch.randn(64, 6, generator=rng)
    torch.testing.assert_close(net(BOTH(x)), SWAP(net(x)))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        (net(x) - 1).square().mean().backward()
        optimizer.step()
    assert all(parameter.any() for parameter in net.parameters())
    torch.testing.assert_close(net(BOTH(x)), SWAP(net(x)))


def test_a_fold_is_a_relu_between_halves(rng):
    x = torch.randn(5, 8, generator=rng)
    parts = Parts.of(halves(8))
    torch.testing.assert_close(fold(*parts.split(x)), parts.split(2 * x.relu()))


def test_a_fold_s_gradient_is_that_of_the_relu_and_so_is_its_gradient_s(rng):
    parts = [torch.randn(5, 4, generator=rng, dtype=torch.double, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(fold, parts)
    assert torch.autograd.gradgradcheck(fold, parts)


def test_it_starts_as_wide_as_a_plain_one(rng):
    x = torch.randn(512, 64, generator=rng)
    plain = mlp([64, 256, 256, 128], rng=rng)
    mirrored = mlp([64, 256, 256, 128], rng=rng, mirrored=(halves(64), halves(128)))
    with torch.no_grad():
        assert float(mirrored(x).std()) == pytest.approx(float(plain(x).std()), rel=0.1)


@pytest.mark.parametrize("out", [SWAP, halves(4)])
def test_untied_it_is_plain_and_computes_the_same(out, rng):
    net = mlp([6, 16, 8, len(out)], rng=rng, mirrored=(BOTH, out))
    assert isinstance(net, MirrorNet)
    with torch.no_grad():
        for layer in net:
            layer.bias.normal_(generator=rng)
    x = torch.randn(9, 6, generator=rng)
    expected = net(x)
    plain = untied(nn.ModuleDict({"body": net}))["body"]
    assert [type(layer) for layer in plain.children()] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    torch.testing.assert_close(plain(x), expected)
