"""Networks: multilayer perceptrons over named inputs, and what normalises them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from pretrain.rl.mirror import Reflection, halves
from pretrain.rl.mirror_net import MirrorLinear, MirrorNet, interleaved
from pretrain.rl.rollout import Batch


class Normalizer(nn.Module):
    """(x - mean) / std, clipped. The statistics are facts of a data set, or follow the data by `update`."""

    mean: Tensor
    std: Tensor
    count: Tensor

    def __init__(self, mean: Tensor, std: Tensor, clip: float = 10.0):
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", mean.clone())
        self.register_buffer("std", std.clone())
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.mean) / self.std).clamp(-self.clip, self.clip)

    @torch.no_grad()
    def update(self, x: Tensor, floor: float = 1e-2) -> None:
        """Fold a batch (n, ...) into the running mean and std. (Chan et al. 1979, parallel variance.)"""
        n = len(x)
        total = self.count + n
        share = (n / total).float()
        delta = x.mean(0) - self.mean
        variance = (1 - share) * self.std**2 + share * x.var(0, correction=0) + share * (1 - share) * delta**2
        self.mean += share * delta
        self.std.copy_(variance.sqrt().clamp_min(floor))
        self.count.copy_(total)


def standard(dim: int) -> Normalizer:
    """A normaliser that has seen nothing yet: mean 0, std 1."""
    return Normalizer(torch.zeros(dim), torch.ones(dim))


class Inputs(nn.Module):
    """Named inputs side by side, each through its own module (a Normalizer, or nn.Identity for a latent)."""

    def __init__(self, parts: Mapping[str, nn.Module]):
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.names = tuple(parts)

    def forward(self, batch: Batch) -> Tensor:
        return torch.cat([part(batch[name]) for name, part in self.parts.items()], -1)


def mlp(
    sizes: Sequence[int],
    *,
    last_scale: float = 1.0,
    rng: Generator,
    mirrored: Reflection | None = None,
) -> nn.Sequential:
    """Linear and ReLU layers. He-initialised; the last layer is scaled by `last_scale`; biases start at 0.

    With `mirrored`, the net commutes with these reflections of its input and output: f(M x) = M f(x). In between, the
    halves of each layer swap.
    """
    if mirrored is None:
        layers = [nn.Linear(*sides) for sides in pairwise(sizes)]
    else:
        into, out = mirrored
        layers = [MirrorLinear(*sides) for sides in pairwise([into, *map(halves, sizes[1:-1]), out])]
    for layer, fan_in in zip(layers, sizes, strict=False):
        last = layer is layers[-1]
        _draw(layer, math.sqrt((1.0 if last else 2.0) / fan_in) * (last_scale if last else 1.0), rng)
    return interleaved(layers) if mirrored is None else MirrorNet(*layers)


@torch.no_grad()
def _draw(layer: nn.Linear | MirrorLinear, std: float, rng: Generator) -> None:
    """Weights with that spread, also of the plain layer that a mirroring one amounts to; no bias."""
    plain = isinstance(layer, nn.Linear)
    bound = (3.0 if plain else 1.5) ** 0.5 * std
    for weight in (layer.weight,) if plain else (layer.even, layer.odd):
        weight.uniform_(-bound, bound, generator=rng)
    layer.bias.zero_()


class GaussianPolicy(nn.Module):
    """a ~ N(mu(inputs), std): one std for all, no weight of the net; whoever trains it sets it."""

    def __init__(self, inputs: Inputs, body: nn.Sequential, std: float):
        super().__init__()
        self.inputs, self.body, self.std = inputs, body, std

    def forward(self, obs: Batch) -> Tensor:
        """Mean action, (..., A)."""
        return self.body(self.inputs(obs))

    @torch.no_grad()
    def act(self, obs: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Action mu + std * noise (N, A), and its log-probability (N,)."""
        mean = self(obs)
        action = mean + self.std * noise
        return action, self.logp(mean, action)

    def logp(self, mean: Tensor, action: Tensor) -> Tensor:
        """log N(action; mean, std) without its constant, (..., A) -> (...)."""
        return -0.5 * ((action - mean) / self.std).square().sum(-1)


class Value(nn.Module):
    """V(inputs), in units of the running spread of returns."""

    def __init__(self, inputs: Inputs, body: nn.Sequential):
        super().__init__()
        self.inputs, self.body, self.scale = inputs, body, standard(1)

    def forward(self, obs: Batch) -> Tensor:
        """Normalised value, (...)."""
        return self.body(self.inputs(obs)).squeeze(-1)

    @torch.no_grad()
    def unscaled(self, obs: Batch) -> Tensor:
        """Value in units of reward, (...)."""
        return self(obs) * self.scale.std + self.scale.mean
