"""Reflection-equivariant networks, computed in the reflection's eigenbasis with half the products
of a dense network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pretrain.compiled.kernel import can_read, is_compiled
from pretrain.rl.mirror import Mirror, SymmetryBasis

M = TypeVar("M", bound=nn.Module)


class MirrorLinear(nn.Module):
    """The two blocks of a linear layer with f(mirror(x)) = mirror(f(x)): even to even, odd to odd.

    (Cohen and Welling 2017, "Steerable CNNs", section 2, for a group of two.) It has half the
    parameters of a dense layer, so it needs fewer samples, and half its products."""

    def __init__(self, into: Mirror, out: Mirror):
        super().__init__()
        self.in_features = len(into)
        self.out_features = len(out)
        self.into = SymmetryBasis.from_mirror(into)
        self.out = SymmetryBasis.from_mirror(out)
        self.even = nn.Parameter(torch.zeros(self.out.num_even, self.into.num_even))
        self.odd = nn.Parameter(torch.zeros(self.out.num_odd, self.into.num_odd))
        self.bias = nn.Parameter(
            torch.zeros(self.out.num_even)
        )  # an odd bias would break the symmetry

    def forward(self, even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
        """Twice the parts of the input to the parts of the output."""
        return linear(even, self.even, self.bias), linear(odd, self.odd)

    @property
    def weight(self) -> Tensor:
        """(out, in), of the dense layer that computes the same."""
        even, odd = self.into.split(2 * torch.eye(self.in_features))
        return self.out.join(linear(even, self.even), linear(odd, self.odd)).T

    @torch.no_grad()
    def load_dense(self, weight: Tensor, bias: Tensor) -> None:
        """The inverse of `to_dense`, of a dense layer (out, in), (out). ValueError where that layer
        does not commute with the reflection."""
        units = torch.eye(self.in_features).tensor_split([self.into.num_even])
        for unit, own, part in zip(units, (self.even, self.odd), (0, 1), strict=True):
            inputs = self.into.join(*unit.tensor_split([self.into.num_even], -1))
            own.copy_(self.out.split(inputs @ weight.T)[part].T / 2)
        self.bias.copy_(self.out.split(bias)[0])
        dense = self.to_dense()
        size = float(weight.abs().max()) + 1e-6
        if not torch.allclose(dense.weight, weight, rtol=0, atol=1e-4 * size):
            raise ValueError("the layer does not commute with the reflection; see symmetry=false")

    def to_dense(self) -> nn.Linear:
        """The dense layer that computes the same."""
        layer = nn.Linear(self.in_features, self.out_features, device="meta")
        bias = self.out.join(self.bias, torch.zeros(self.out.num_odd))
        layer.weight = nn.Parameter(self.weight.detach().contiguous())
        layer.bias = nn.Parameter(bias.detach().contiguous())
        return layer


class MirrorNet(nn.Sequential):
    """Mirror layers with ReLUs between them: a net with f(mirror(x)) = mirror(f(x)). A reflection
    swaps the halves of each hidden layer.

    The input of each layer is twice the parts, so an Adam step at rate r moves the dense weights by
    r sqrt 2 (root mean square); the presets' learning rates were tuned for such steps."""

    def __iter__(self) -> Iterator[MirrorLinear]:
        yield from cast(Iterator[MirrorLinear], super().__iter__())

    def forward(self, input: Tensor) -> Tensor:
        layers = list(self)
        parts = layers[0](*layers[0].into.split(2 * input))
        for layer in layers[1:]:
            parts = layer(*apply_relu(*parts))
        return layers[-1].out.join(*parts)

    def to_dense(self) -> nn.Sequential:
        """The dense net that computes the same."""
        return interleave_relu([layer.to_dense() for layer in self])


def linear_layers(body: nn.Sequential) -> list[nn.Linear | MirrorLinear]:
    """The layers with weights, in their order."""
    return [layer for layer in body if isinstance(layer, nn.Linear | MirrorLinear)]


def interleave_relu(layers: Sequence[nn.Module]) -> nn.Sequential:
    """`layers` with ReLUs between them."""
    modules: list[nn.Module] = []
    for layer in layers[:-1]:
        modules += [layer, nn.ReLU()]
    return nn.Sequential(*modules, layers[-1])


def apply_relu(even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
    """The parts (..., n) of a vector whose halves swap, to twice the parts of its ReLU."""
    return _ReluInParts.apply(even, odd)


class _ReluInParts(torch.autograd.Function):
    """Join, ReLU, split, without copies. Saves where the halves were positive."""

    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor) -> tuple[Tensor, Tensor]:
        if is_compiled() and can_read(even, odd):
            from pretrain.compiled.mirror import relu_in_parts

            even, odd, positive = relu_in_parts(even, odd)
            ctx.save_for_backward(positive)
            return even, odd
        left = (even + odd).relu_()
        right = (even - odd).relu_()
        ctx.save_for_backward(left, right)
        return left + right, left - right

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return _ThresholdInParts.apply(*gradients, *ctx.saved_tensors)


class _ThresholdInParts(torch.autograd.Function):
    """The gradient of the ReLU, in parts: it passes where the input was positive. Self-adjoint."""

    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, *positive: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*positive)
        if len(positive) == 1:
            from pretrain.compiled.mirror import threshold_in_parts

            return threshold_in_parts(even.contiguous(), odd.contiguous(), *positive)
        left, right = positive
        threshold = torch.ops.aten.threshold_backward
        onto_left = threshold(even + odd, left, 0)
        onto_right = threshold(even - odd, right, 0)
        return onto_left + onto_right, onto_left - onto_right

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        onto = _ThresholdInParts.apply(*gradients, *ctx.saved_tensors)
        return *onto, *(None for _ in ctx.saved_tensors)


def to_dense(net: M) -> M:
    """`net` with dense networks in place of the mirrored ones inside it, changed in place, for
    export."""
    assert not isinstance(net, MirrorNet), "call `to_dense` of the mirrored net itself"
    for name, child in net.named_children():
        setattr(net, name, child.to_dense() if isinstance(child, MirrorNet) else to_dense(child))
    return net
