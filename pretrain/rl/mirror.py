"""A reflection of named numbers, and what it leaves of them as it is."""

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

    def repeated(self, others: Sequence[int]) -> Mirror:
        """Of blocks like this one, side by side: block i becomes the image of block others[i]."""
        starts = len(self) * torch.tensor(others)[:, None]
        return Mirror((starts + self.source).flatten(), self.sign.repeat(len(others)))


Reflection = tuple[Mirror, Mirror]  # of a network's input and of its output


def unmoved(n: int) -> Mirror:
    """Leaves n numbers as they are."""
    return Mirror(torch.arange(n), torch.ones(n))


def halves(n: int) -> Mirror:
    """Swaps the first half of n numbers, n even, with the second."""
    return unmoved(n // 2).repeated((1, 0))


def beside(*mirrors: Mirror) -> Mirror:
    """Of numbers side by side, each part mirrored for itself."""
    starts = [sum(len(m) for m in mirrors[:i]) for i in range(len(mirrors))]
    sources = [mirror.source + start for mirror, start in zip(mirrors, starts, strict=True)]
    return Mirror(torch.cat(sources), torch.cat([mirror.sign for mirror in mirrors]))


@dataclass(frozen=True)
class Axes:
    """Axes along which a reflection is plain: numbers have an even part, which it leaves alone, and an odd one, which it turns
    around. Of those that trade places, their sum and their difference; orthonormal, so that the way back is the transpose."""

    order: Tensor  # (n,) long: those that stay, the first of each pair; those that change sign, the second of each pair
    place: Tensor  # (n,) long: of each number in that order
    scale: Tensor  # (n,) what each counts, in that order
    num_even: int
    num_odd: int
    num_pairs: int

    @classmethod
    def of(cls, mirror: Mirror) -> Axes:
        index = torch.arange(len(mirror))
        alone = mirror.source == index
        first = index[index < mirror.source]
        stays, turns = index[alone & (mirror.sign > 0)], index[alone & (mirror.sign < 0)]
        scale = torch.ones(len(mirror))
        scale[first], scale[mirror.source[first]] = 0.5**0.5, mirror.sign[first] * 0.5**0.5
        order = torch.cat([stays, first, turns, mirror.source[first]])
        return cls(order, order.argsort(), scale[order], len(stays) + len(first), len(turns) + len(first), len(first))

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., n) -> its even part (..., num_even) and its odd one (..., num_odd)."""
        return _Split.apply(x, self)

    def join(self, even: Tensor, odd: Tensor) -> Tensor:
        """The way back: (..., num_even), (..., num_odd) -> (..., n)."""
        return _Join.apply(even, odd, self)

    def cross(self, x: Tensor) -> Tensor:
        """Pairs of `x` (..., n), in order, to their sums and differences, in place."""
        first, second = x[..., self.num_even - self.num_pairs : self.num_even], x[..., x.shape[-1] - self.num_pairs :]
        total = first + second
        torch.sub(first, second, out=second)
        first.copy_(total)
        return x


class _Split(torch.autograd.Function):
    """Autograd's own way back from a selection adds up number by number; this one selects, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axes: Axes) -> tuple[Tensor, ...]:
        ctx.axes = axes
        crossed = axes.cross(x.index_select(-1, axes.order).mul_(axes.scale))
        return crossed.tensor_split([axes.num_even], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Join.apply(*gradients, ctx.axes), None


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, axes: Axes) -> Tensor:
        ctx.axes = axes
        return axes.cross(torch.cat([even, odd], -1)).mul_(axes.scale).index_select(-1, axes.place)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *_Split.apply(*gradients, ctx.axes), None
