"""Reflections of vectors, and the basis in which a reflection is diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pretrain.compiled.kernel import can_read, is_compiled


@dataclass(frozen=True)
class Mirror:
    """x -> sign * x[..., source], an involution."""

    source: Tensor  # (n,) long
    sign: Tensor  # (n,) 1 or -1

    def __call__(self, x: Tensor) -> Tensor:
        """(..., n) -> (..., n)."""
        return self.sign * x[..., self.source]

    def __len__(self) -> int:
        return len(self.source)

    def repeat_blocks(self, sources: Sequence[int]) -> Mirror:
        """For several such blocks side by side: block i becomes the image of block sources[i]."""
        starts = len(self) * torch.tensor(sources)[:, None]
        return Mirror((starts + self.source).flatten(), self.sign.repeat(len(sources)))


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
class PairSums:
    """A sparse linear map: each output is the weighted sum of two inputs."""

    index: Tensor  # (m, 2) long
    weight: Tensor  # (m, 2)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., n) -> (..., m)."""
        if is_compiled() and can_read(x):
            from pretrain.compiled.mirror import sum_pairs

            return sum_pairs(x, self.index, self.weight)
        first, second = self.index.T
        return self.weight[:, 0] * x[..., first] + self.weight[:, 1] * x[..., second]


@dataclass(frozen=True)
class SymmetryBasis:
    """The eigenbasis of a reflection: coordinates of its even part, which is invariant, and of its
    odd part, which changes sign. A pair of swapped numbers gives their sum and their difference.
    The basis is orthonormal: its inverse is its transpose."""

    to_parts: PairSums  # (..., n) -> even part, odd part
    from_parts: PairSums  # the inverse
    num_even: int
    num_odd: int

    @classmethod
    def from_mirror(cls, mirror: Mirror) -> SymmetryBasis:
        number = torch.arange(len(mirror))
        fixed = mirror.source == number
        first = number[number < mirror.source]
        kept = number[fixed & (mirror.sign > 0)]
        negated = number[fixed & (mirror.sign < 0)]
        second = mirror.source[first]
        pairs = len(first)
        even = len(kept) + pairs
        # the coordinates: kept numbers, sums of pairs, numbers that change sign, differences
        number_of = torch.cat([kept, first, negated, second])
        place = number_of.argsort()
        coordinate = torch.arange(len(mirror))
        index = coordinate[:, None].repeat(1, 2)
        weight = torch.full((len(mirror), 2), 0.5)  # half of a number and half of it again
        sums = coordinate[even - pairs : even]
        differences = coordinate[len(mirror) - pairs :]
        index[sums] = torch.stack([sums, differences], -1)
        index[differences] = index[sums]
        half = 0.5**0.5
        weight[sums] = half
        weight[differences] = torch.tensor([half, -half])
        to_sign = torch.ones(len(mirror))
        to_sign[differences] = mirror.sign[first]
        return cls(
            to_parts=PairSums(number_of[index], weight * to_sign[index]),
            from_parts=PairSums(index[place], (weight * to_sign[:, None])[place]),
            num_even=even,
            num_odd=len(negated) + pairs,
        )

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., n) -> its even part (..., num_even) and its odd one (..., num_odd)."""
        return _Split.apply(x, self)

    def join(self, even: Tensor, odd: Tensor) -> Tensor:
        """The inverse of `split`: (..., num_even), (..., num_odd) -> (..., n)."""
        return _Join.apply(even, odd, self)


class _Split(torch.autograd.Function):
    """Autograd's gradient of a selection adds number by number; this one also selects."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axes: SymmetryBasis) -> tuple[Tensor, ...]:
        ctx.axes = axes
        return axes.to_parts(x).tensor_split([axes.num_even], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _Join.apply(*gradients, ctx.axes), None


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, even: Tensor, odd: Tensor, axes: SymmetryBasis) -> Tensor:
        ctx.axes = axes
        return axes.from_parts(torch.cat([even, odd], -1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *_Split.apply(*gradients, ctx.axes), None
