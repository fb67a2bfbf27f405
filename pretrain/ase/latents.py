"""Skill latents: points on the unit sphere, and how long each is kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

TRIES = 128  # random directions per draw of `draw_nearest_to`


def sample_on_sphere(n: int, dim: int, rng: Generator) -> Tensor:
    """n directions, uniform on the unit sphere, (n, dim)."""
    return normalize(torch.randn(n, dim, generator=rng), dim=-1)


def draw_nearest_to(clips: Tensor, latents: Tensor, rng: Generator) -> Tensor:
    """Directions (n, dim), uniform among those whose nearest of `latents` (C, dim) is that of
    `clips` (n,); the clip's latent where none is found."""
    dim = latents.shape[1]
    candidates = sample_on_sphere(len(clips) * TRIES, dim, rng).view(len(clips), TRIES, dim)
    near = (candidates @ latents.T).argmax(-1) == clips[:, None]
    first = candidates[torch.arange(len(clips)), near.byte().argmax(1)]
    return torch.where(near.any(1)[:, None], first, latents[clips])


@dataclass(frozen=True)
class LatentSampling:
    """How latents are drawn, and for how long a world keeps one: uniform in control steps."""

    dim: int
    shortest: int  # control steps
    longest: int
    # share of clips' own latents; at the start of an episode, that of the clip it begins in
    clip_prob: float
    # a latent's return ends with it, bootstrapped by the value under that latent
    own_return: bool = False

    def draw_lifetimes(self, n: int, rng: Generator) -> Tensor:
        """Control steps for which n latents are kept, (n,)."""
        return torch.randint(self.shortest, self.longest + 1, (n,), generator=rng)
