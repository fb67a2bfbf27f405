"""Moves the latents of similar clips apart.

Embeddings of similar clips lie together: of the 31 clips of `everyday`, those of a stand and of a
reach have a cosine of 0.96, and those of runs added to a library that has none, embedded by its
encoder, 0.999. Then a z cannot select between such clips. Of the clips of the other presets no two
have a cosine over 0.45."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor
from torch.nn import Parameter
from torch.nn.functional import normalize

from pretrain.rl.adam import Adam
from pretrain.rl.mirror import Mirror

# Not less: what a policy learns for a clip helps those nearby. With 0.5, clips added to a library
# were learned more slowly (docs/training.md).
MAX_COSINE = 0.9
# Of the exponential in the loss: with a lower one, crowded latents gather in clusters.
SHARPNESS = 30.0
MAX_STEPS = 1000
LR = 0.01
NOISE = 0.01


def separate_latents(
    latents: Tensor,
    originals: Sequence[int],
    rng: Generator,
    *,
    fixed: Tensor | None = None,
    mirror: Mirror | None = None,
) -> Tensor:
    """Latents (C, D) near `latents` of which those of different clips have cosines of at most
    MAX_COSINE, as far as the sphere has room; a clip and its mirror image may be closer.

    `originals` has the index of each clip's original, its own where it is no mirror image. `fixed`
    (C,) bool are not moved, however close two of them are. With `mirror`, of a latent, the latent
    of a mirror image is the mirror image of its original's."""
    origin = torch.tensor(originals)
    held = torch.zeros(len(latents), dtype=torch.bool) if fixed is None else fixed
    differ = (origin[:, None] != origin) & ~(held[:, None] & held)
    if not (latents @ latents.T)[differ].gt(MAX_COSINE).any():
        return latents
    is_image = origin != torch.arange(len(origin))
    # equal latents would have equal gradients
    free = Parameter(latents + NOISE * torch.randn(latents.shape, generator=rng))
    optimizer = Adam([free], LR)

    def place() -> Tensor:
        placed = normalize(free, dim=-1)
        if mirror is not None:
            placed = torch.where(is_image[:, None], mirror(placed[origin]), placed)
        return torch.where(held[:, None], latents, placed)

    for _ in range(MAX_STEPS):
        placed = place()
        cosines = (placed @ placed.T)[differ]
        if cosines.max() <= MAX_COSINE:
            break
        loss = (SHARPNESS * cosines).logsumexp(0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return place().detach()
