"""Compiled parts of mirrored networks match those of torch, with their gradients."""

from __future__ import annotations

import pytest
import torch

from pretrain.compiled.mirror import relu_in_parts, sum_pairs, threshold_in_parts
from pretrain.rl import mirror, mirror_net
from pretrain.rl.mirror import make_half_swap, make_identity_mirror
from pretrain.rl.nets import mlp


def test_compiled_pair_sums_match_torch(monkeypatch, rng):
    x = torch.randn(5, 3, 8, generator=rng)
    basis = mirror.SymmetryBasis.from_mirror(make_half_swap(8))
    for pairs in (basis.to_parts, basis.from_parts):
        actual = sum_pairs(x, pairs.index, pairs.weight)
        with monkeypatch.context() as patch:
            patch.setattr(mirror, "is_compiled", lambda: False)
            torch.testing.assert_close(actual, pairs(x))


def test_a_relu_passes_what_is_positive_or_not_a_number():
    even = torch.tensor([2.0, 1.0, -2.0, 0.0, torch.nan])
    odd = torch.tensor([1.0, 2.0, 1.0, 0.0, 1.0])
    new_even, new_odd, positive = relu_in_parts(even, odd)
    assert new_even[:4].tolist() == [4, 3, 0, 0]
    assert new_odd[:4].tolist() == [2, 3, 0, 0]
    assert new_even[4].isnan()
    assert positive.tolist() == [3, 1, 0, 0, 3]
    onto = threshold_in_parts(torch.ones(5), torch.zeros(5), positive)
    assert torch.stack(onto).tolist() == [[2, 1, 0, 0, 2], [0, 1, 0, 0, 0]]


@pytest.mark.parametrize("rows", [1, 64])
def test_gradients_of_first_and_second_order(monkeypatch, rng, rows):
    """The second is that of the discriminator's gradient penalty."""
    reflection = (make_half_swap(6), make_identity_mirror(1))
    net = mlp([6, 8, 8, 1], rng=rng, mirrored=reflection)
    x = torch.randn(rows, 6, generator=rng, requires_grad=True)

    def gradients() -> list[torch.Tensor]:
        (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        loss = slope.square().sum() + net(x).square().sum()
        return [slope, *torch.autograd.grad(loss, list(net.parameters()))]

    actual = gradients()
    for module in (mirror, mirror_net):
        monkeypatch.setattr(module, "is_compiled", lambda: False)
    for ours, reference in zip(actual, gradients(), strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-5)
