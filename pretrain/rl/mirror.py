"""Reflections of vectors, and the basis in which a reflection is diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mirror:
    """x -> sign * x[..., source], which undoes itself."""

    source: Tensor  # (n,) long
    sign: Tensor  # (n,) 1 or -1

    def __call__(self, x: Tensor) -> Tensor:
        """(..., n) -> (..., n)."""
        return self.sign * x[..., self.source]

    def __len__(self) -> int:
        return len(self.source)

    def repeat_blocks(self, others: Sequence[int]) -> Mirror:
        """For several such blocks side by side: block i becomes the image of block others[i]."""
        starts = len(self) * torch.tensor(others)[:, None]
        return Mirror((starts + self.source).flatten(), self.sign.repeat(len(others)))


Reflection = tuple[Mirror, Mirror]  # of a network's input and of its output


def make_identity_mirror(n: int) -> Mirror:
    """Keeps n numbers as they are."""
    return Mirror(torch.arange(n), torch.ones(n))


def make_half_swap(n: int) -> Mirror:
    """Swaps the first half of n numbers, n even, with the second."""
    return make_identity_mirror(n // 2).repeat_blocks((1, 0))


def concatenate_mirrors(*mirrors: Mirror) -> Mirror:
    """For concatenated vectors, each part mirrored on its own."""
    sources: list[Tensor] = []
    start = 0
    for mirror in mirrors:
        sources.append(mirror.source + start)
        start += len(mirror)
    return Mirror(torch.cat(sources), torch.cat([mirror.sign for mirror in mirrors]))


@dataclass(frozen=True)
class SymmetryBasis:
    """The eigenbasis of a reflection: coordinates of its even part, which the reflection keeps, and
    of its odd part, whose sign it changes. A pair of swapped numbers gives their sum and their
    difference. The basis is orthonormal, so that its inverse is its transpose."""

    # (n,) long: kept numbers, first of each pair; numbers that change sign, second of each pair
    order: Tensor
    place: Tensor  # (n,) long: the index of each number in `order`
    scale: Tensor  # (n,) factors, in that order
    num_even: int
    num_odd: int
    num_pairs: int

    @classmethod
    def from_mirror(cls, mirror: Mirror) -> SymmetryBasis:
        index = torch.arange(len(mirror))
        fixed = mirror.source == index
        first = index[index < mirror.source]
        kept = index[fixed & (mirror.sign > 0)]
        negated = index[fixed & (mirror.sign < 0)]
        second = mirror.source[first]
        scale = torch.ones(len(mirror))
        scale[first] = 0.5**0.5
        scale[second] = mirror.sign[first] * 0.5**0.5
        order = torch.cat([kept, first, negated, second])
        return cls(
            order,
            place=order.argsort(),
            scale=scale[order],
            num_even=len(kept) + len(first),
            num_odd=len(negated) + len(first),
            num_pairs=len(first),
        )

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., n) -> its even part (..., num_even) and its odd one (..., num_odd)."""
        return _Split.apply(x, self)

    def join(self, even: Tensor, odd: Tensor) -> Tensor:
        """The inverse of `split`: (..., num_even), (..., num_odd) -> (..., n)."""
        return _Join.apply(even, odd, self)

    def cross(self, x: Tensor) -> Tensor:
        """Pairs of `x` (..., n), in order, to their sums and differences, in place."""
        first = x[..., self.num_even - self.num_pairs : self.num_even]
        second = x[..., x.shape[-1] - self.num_pairs :]
        total = first + second
        torch.sub(first, second, out=second)
        first.copy_(total)
        return x


class _Split(torch.autograd.Function):
    """Autograd's own gradient of a selection adds number by number; this one selects, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axes: SymmetryBasis) -> tuple[Tensor, ...]:
        ctx.axes = axes
        crossed = axes.cross(x.index_select(-1, axes.order).mul_(axes.scale))
        return crossed.tensor_split([axes.num_even], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Join.apply(*gradients, ctx.axes), None


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, axes: SymmetryBasis) -> Tensor:
        ctx.axes = axes
        return axes.cross(torch.cat([even, odd], -1)).mul_(axes.scale).index_select(-1, axes.place)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *_Split.apply(*gradients, ctx.axes), None
