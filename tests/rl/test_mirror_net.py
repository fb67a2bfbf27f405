"""Networks that commute with a reflection."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest
import torch
from torch import nn

from pretrain.rl.adam import Adam
from pretrain.rl.mirror import (
    Mirror,
    SymmetryBasis,
    concatenate_mirrors,
    make_half_swap,
    make_identity_mirror,
)
from pretrain.rl.mirror_net import MirrorNet, apply_relu, to_dense
from pretrain.rl.nets import mlp

FLIP = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
SWAP = Mirror(torch.tensor([1, 0, 2]), torch.tensor([1.0, 1.0, -1.0]))
BOTH = concatenate_mirrors(FLIP, SWAP)


def test_mirror_net_is_equivariant_before_and_after_training(rng):
    net = mlp([6, 32, 16, 3], rng=rng, mirrored=(BOTH, SWAP))
    x = torch.randn(64, 6, generator=rng)
    torch.testing.assert_close(net(BOTH(x)), SWAP(net(x)))
    optimizer = Adam(net.parameters(), 1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        (net(x) - 1).square().mean().backward()
        optimizer.step()
    assert all(parameter.any() for parameter in net.parameters())
    torch.testing.assert_close(net(BOTH(x)), SWAP(net(x)))


def test_apply_relu_is_a_relu_in_the_eigenbasis(rng):
    x = torch.randn(5, 8, generator=rng)
    axes = SymmetryBasis.from_mirror(make_half_swap(8))
    torch.testing.assert_close(apply_relu(*axes.split(x)), axes.split(2 * x.relu()))


def test_apply_relu_first_and_second_gradients_pass_gradcheck(rng):
    parts = [
        torch.randn(5, 4, generator=rng, dtype=torch.double, requires_grad=True) for _ in range(2)
    ]
    assert torch.autograd.gradcheck(apply_relu, parts)
    assert torch.autograd.gradgradcheck(apply_relu, parts)


def test_mirror_net_init_std_matches_a_plain_mlp(rng):
    x = torch.randn(512, 66, generator=rng)
    plain = mlp([66, 256, 256, 128], rng=rng)
    mirrored = mirror_net(
        [66, 256, 256, 128], BOTH.repeat_blocks(range(11)), make_half_swap(128), rng
    )
    for ours, theirs in zip(linears(mirrored.to_dense()), linears(plain), strict=True):
        assert float(ours.weight.detach().std()) == pytest.approx(
            float(theirs.weight.detach().std()), rel=0.05
        )
    with torch.no_grad():
        assert float(mirrored(x).std()) == pytest.approx(float(plain(x).std()), rel=0.1)


def test_adam_step_moves_dense_weights_by_sqrt_2_times_lr(rng):
    net = mirror_net([66, 256, 256, 128], BOTH.repeat_blocks(range(11)), make_half_swap(128), rng)
    x = torch.randn(64, 66, generator=rng)
    before = [layer.weight.detach() for layer in net]
    net(x).square().sum().backward()
    Adam(net.parameters(), 1e-3).step()
    for layer, old in zip(net, before, strict=True):
        assert float((layer.weight.detach() - old).square().mean().sqrt()) == pytest.approx(
            1e-3 * 2**0.5, rel=0.05
        )


def test_a_net_is_loaded_from_its_plain_layers(rng):
    net = mirror_net([6, 32, 16, 3], BOTH, SWAP, rng)
    other = mirror_net([6, 32, 16, 3], BOTH, SWAP, rng)
    for layer, plain in zip(other, linears(net.to_dense()), strict=True):
        layer.load_dense(plain.weight, plain.bias)
    x = torch.randn(64, 6, generator=rng)
    torch.testing.assert_close(other(x), net(x))
    plain = linears(mlp([6, 32, 16, 3], rng=rng))[0]
    with pytest.raises(ValueError, match="does not commute"):
        next(iter(other)).load_dense(plain.weight, plain.bias)


@pytest.mark.parametrize("out", [SWAP, make_half_swap(4), make_identity_mirror(1)])
def test_to_dense_keeps_the_outputs(out, rng):
    net = mirror_net([6, 16, 8, len(out)], BOTH, out, rng)
    x = torch.randn(9, 6, generator=rng)
    with torch.no_grad():
        for layer in net:
            layer.bias.normal_(generator=rng)
    plain = to_dense(nn.ModuleDict({"body": net}))["body"]
    assert [type(layer) for layer in plain.children()] == [
        nn.Linear,
        nn.ReLU,
        nn.Linear,
        nn.ReLU,
        nn.Linear,
    ]
    torch.testing.assert_close(plain(x), net(x))


def test_gradient_penalty_gradients_match_the_dense_net(rng):
    """As in the discriminator's gradient penalty, compared along symmetric changes of weights."""
    net = mirror_net([6, 16, 8, 1], BOTH, make_identity_mirror(1), rng)
    x = torch.randn(9, 6, generator=rng)

    def penalty(body: nn.Module) -> torch.Tensor:
        at = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(body(at).sum(), at, create_graph=True)
        return slope.square().sum()

    plain = net.to_dense()
    moves = deepcopy(net)
    blocks = [block for layer in net for block in (layer.even, layer.odd)]
    ours = torch.autograd.grad(penalty(net), blocks)
    theirs = torch.autograd.grad(penalty(plain), [layer.weight for layer in linears(plain)])
    with torch.no_grad():
        for parameter in moves.parameters():
            parameter.normal_(generator=rng)
    along = [block.detach() for layer in moves for block in (layer.even, layer.odd)]
    along_plain = [layer.weight.detach() for layer in linears(moves.to_dense())]
    torch.testing.assert_close(dot(ours, along), dot(theirs, along_plain))


def mirror_net(sizes: list[int], into: Mirror, out: Mirror, rng: torch.Generator) -> MirrorNet:
    net = mlp(sizes, rng=rng, mirrored=(into, out))
    assert isinstance(net, MirrorNet)
    return net


def linears(net: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in net if isinstance(layer, nn.Linear)]


def dot(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([(x * y).sum() for x, y in zip(a, b, strict=True)]).sum()
