"""Networks: multilayer perceptrons over named inputs, and their normalizers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn

from pretrain.rl.mirror import Reflection, make_half_swap
from pretrain.rl.mirror_net import MirrorLinear, MirrorNet, interleave_relu
from pretrain.rl.rollout import Batch, SampledAction

MIN_STD = 0.1  # of an input whose statistics are fixed by the clips
MIN_RUNNING_STD = 0.01  # of an input whose statistics are updated in training


class Normalizer(nn.Module):
    """(x - mean) / std, clipped. The statistics are fixed, or tracked by `update`."""

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
    def update(self, x: Tensor) -> None:
        """Add a batch (n, ...) to the running mean and std. (Chan et al. 1979, parallel
        variance.)"""
        n = len(x)
        total = self.count + n
        share = (n / total).float()
        delta = x.mean(0) - self.mean
        within = (1 - share) * self.std**2 + share * x.var(0, correction=0)
        variance = within + share * (1 - share) * delta**2
        self.mean += share * delta
        self.std.copy_(variance.sqrt().clamp_min(MIN_RUNNING_STD))
        self.count.copy_(total)


def make_fixed_normalizer(x: Tensor) -> Normalizer:
    """With the mean and std of x (n, F), for observations of the clips.

    The std is at least MIN_STD, so that a feature that hardly varies in the clips, such as a wrist
    at rest, does not become a huge input in simulation."""
    return Normalizer(x.mean(0), x.std(0).clamp_min(MIN_STD))


def make_unit_normalizer(dim: int) -> Normalizer:
    """A normalizer before any update: mean 0, std 1."""
    return Normalizer(torch.zeros(dim), torch.ones(dim))


class Inputs(nn.Module):
    """Named inputs concatenated, each through its own module (a Normalizer, or nn.Identity for a
    latent)."""

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
    """Linear and ReLU layers. He-initialized; the last layer is scaled by `last_scale`; biases
    start at 0.

    With `mirrored`, the net commutes with these reflections of its input and output:
    f(M x) = M f(x). On hidden layers the reflection swaps the two halves.
    """
    if mirrored is None:
        layers = [nn.Linear(*sides) for sides in pairwise(sizes)]
    else:
        into, out = mirrored
        layers = [
            MirrorLinear(*sides)
            for sides in pairwise([into, *map(make_half_swap, sizes[1:-1]), out])
        ]
    for layer, fan_in in zip(layers, sizes, strict=False):
        last = layer is layers[-1]
        gain = math.sqrt((1.0 if last else 2.0) / fan_in)
        _initialize(layer, gain * (last_scale if last else 1.0), rng)
    return interleave_relu(layers) if mirrored is None else MirrorNet(*layers)


@torch.no_grad()
def _initialize(layer: nn.Linear | MirrorLinear, std: float, rng: Generator) -> None:
    """Weights of standard deviation `std`, for a mirrored layer those of its dense equivalent; bias
    0."""
    dense = isinstance(layer, nn.Linear)
    # a uniform number within +-b has the variance b^2 / 3; an entry of the dense equivalent is the
    # sum of an even and an odd weight, each of half its variance
    bound = (3.0 if dense else 1.5) ** 0.5 * std
    for weight in (layer.weight,) if dense else (layer.even, layer.odd):
        weight.uniform_(-bound, bound, generator=rng)
    layer.bias.zero_()


class GaussianPolicy(nn.Module):
    """a ~ N(mu(inputs), std). `std` is one number for all actions, set by a schedule and not
    learned, nor part of the state dict: after a restore the schedule sets it again."""

    def __init__(self, inputs: Inputs, body: nn.Sequential, std: float):
        super().__init__()
        self.inputs = inputs
        self.body = body
        self.std = std

    def forward(self, obs: Batch) -> Tensor:
        """Mean action, (..., A)."""
        return self.body(self.inputs(obs))

    @torch.no_grad()
    def act(self, obs: Batch, noise: Tensor) -> SampledAction:
        """The action mu + std * noise (N, A)."""
        mean = self(obs)
        action = mean + self.std * noise
        return SampledAction(mean, action, self.logp(mean, action))

    def logp(self, mean: Tensor, action: Tensor) -> Tensor:
        """log N(action; mean, std) without the terms that depend only on std and A; (..., A) ->
        (...)."""
        return -0.5 * ((action - mean) / self.std).square().sum(-1)


class Value(nn.Module):
    """V(inputs) of each of R rewards, normalized by the running mean and std of its returns."""

    def __init__(self, inputs: Inputs, body: nn.Sequential, num_rewards: int = 1):
        super().__init__()
        self.inputs = inputs
        self.body = body
        self.scale = make_unit_normalizer(num_rewards)

    def forward(self, obs: Batch) -> Tensor:
        """Normalized values, (..., R)."""
        return self.body(self.inputs(obs))

    @torch.no_grad()
    def predict(self, obs: Batch) -> Tensor:
        """Values in units of reward, (..., R)."""
        return self(obs) * self.scale.std + self.scale.mean
