"""Networks that commute with a reflection, computed along its axes: half the products of a plain one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pretrain.rl.mirror import Axes, Mirror

M = TypeVar("M", bound=nn.Module)


class MirrorLinear(nn.Module):
    """The two blocks of a linear layer with f(mirror(x)) = mirror(f(x)): even makes even, odd makes odd.

    (Cohen and Welling 2017, "Steerable CNNs", section 2, for a group of two.) Half the functions of a plain layer, so fewer
    samples, and half its products.
    """

    def __init__(self, into: Mirror, out: Mirror):
        super().__init__()
        self.in_features, self.out_features = len(into), len(out)
        self.into, self.out = Axes.of(into), Axes.of(out)
        self.even = nn.Parameter(torch.zeros(self.out.num_even, self.into.num_even))
        self.odd = nn.Parameter(torch.zeros(self.out.num_odd, self.into.num_odd))
        self.bias = nn.Parameter(torch.zeros(self.out.num_even))  # an odd one would tell left from right

    def forward(self, even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
        """Parts of the input, twice as large as they are, to parts of the output."""
        return linear(even, self.even, self.bias), linear(odd, self.odd)

    @property
    def weight(self) -> Tensor:
        """(out, in), of the plain layer that computes the same."""
        even, odd = self.into.split(2 * torch.eye(self.in_features))
        return self.out.join(linear(even, self.even), linear(odd, self.odd)).T

    def plain(self) -> nn.Linear:
        """The plain layer that computes the same."""
        layer = nn.Linear(self.in_features, self.out_features, device="meta")
        bias = self.out.join(self.bias, torch.zeros(self.out.num_odd))
        layer.weight, layer.bias = (nn.Parameter(x.detach().contiguous()) for x in (self.weight, bias))
        return layer


class MirrorNet(nn.Sequential):
    """Mirror layers with ReLUs between them, where the halves of a layer swap: a net with f(mirror(x)) = mirror(f(x)).

    Layers are given twice what the parts are: a step of Adam at a rate r moves the plain layers' weights by r sqrt 2, in the
    root mean square, and it is for such steps that the presets' rates were found.
    """

    def __iter__(self) -> Iterator[MirrorLinear]:
        yield from cast(Iterator[MirrorLinear], super().__iter__())

    def forward(self, input: Tensor) -> Tensor:
        first, *others = layers = list(self)
        parts = first(*first.into.split(2 * input))
        for layer in others:
            parts = layer(*fold(*parts))
        return layers[-1].out.join(*parts)

    def plain(self) -> nn.Sequential:
        """The plain net that computes the same."""
        return interleaved([layer.plain() for layer in self])


def interleaved(layers: Sequence[nn.Module]) -> nn.Sequential:
    """`layers` with ReLUs between them."""
    return nn.Sequential(*(module for layer in layers[:-1] for module in (layer, nn.ReLU())), layers[-1])


def fold(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
    """Parts of what swaps by halves, (..., n) each, to twice the parts of its ReLU."""
    return _Fold.apply(even, odd)


class _Fold(torch.autograd.Function):
    """Join, ReLU, split, without copies."""

    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
        left, right = (even + odd).relu_(), (even - odd).relu_()
        ctx.save_for_backward(left, right)
        return left + right, left - right

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _Cut.apply(*gradients, *ctx.saved_tensors)


class _Cut(torch.autograd.Function):
    """Parts, of which only what was above zero passes: its own adjoint."""

    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(left, right)
        cut = torch.ops.aten.threshold_backward
        onto_left, onto_right = cut(even + odd, left, 0), cut(even - odd, right, 0)
        return onto_left + onto_right, onto_left - onto_right

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *_Cut.apply(*gradients, *ctx.saved_tensors), None, None


def plainly(net: M) -> M:
    """`net` with plain networks in place of mirroring ones inside it, in place: what is exported is like any other."""
    assert not isinstance(net, MirrorNet), "a mirroring net by itself has `plain`"
    for name, child in net.named_children():
        setattr(net, name, child.plain() if isinstance(child, MirrorNet) else plainly(child))
    return net
