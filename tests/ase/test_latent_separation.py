"""Latents of similar clips are moved apart, and no others."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from pretrain.ase.latent_separation import MAX_COSINE, separate_latents
from pretrain.ase.symmetry import latent_mirror

DIM = 8
CLIPS = 30  # and as many mirror images
ORIGINALS = tuple(i // 2 * 2 for i in range(2 * CLIPS))  # each followed by its mirror image
MIRROR = latent_mirror(DIM)


def crowded(rng: torch.Generator) -> torch.Tensor:
    """Latents with cosines of 0.9 to 1, mirrored in pairs."""
    close = torch.eye(DIM)[0] + 0.05 * torch.randn(CLIPS, DIM, generator=rng)
    own = normalize(close, dim=-1)
    return torch.stack([own, MIRROR(own)], 1).flatten(0, 1)


def largest_cosine(latents: torch.Tensor, originals: tuple[int, ...]) -> float:
    """Of two latents of different clips."""
    origin = torch.tensor(originals)
    cosines = latents @ latents.T
    return float(cosines[origin[:, None] != origin].max())


def test_crowded_latents_are_moved_apart_and_stay_mirrored(rng: torch.Generator) -> None:
    before = crowded(rng)
    assert largest_cosine(before, ORIGINALS) > MAX_COSINE
    after = separate_latents(before, ORIGINALS, rng, mirror=MIRROR)
    assert largest_cosine(after, ORIGINALS) <= MAX_COSINE + 0.001
    torch.testing.assert_close(after.norm(dim=-1), torch.ones(len(after)))
    torch.testing.assert_close(after[1::2], MIRROR(after[::2]))


def test_latents_that_are_apart_are_left_as_they_are(rng: torch.Generator) -> None:
    latents = torch.cat([torch.eye(DIM), -torch.eye(DIM)])
    assert separate_latents(latents, tuple(range(2 * DIM)), rng) is latents


def test_a_clip_and_its_mirror_image_may_be_the_same(rng: torch.Generator) -> None:
    latents = torch.eye(DIM).repeat_interleave(2, 0)
    originals = tuple(i // 2 * 2 for i in range(2 * DIM))
    assert separate_latents(latents, originals, rng) is latents


def test_fixed_latents_keep_their_places(rng: torch.Generator) -> None:
    before = crowded(rng)
    fixed = torch.arange(len(before)) < 2
    after = separate_latents(before, ORIGINALS, rng, fixed=fixed, mirror=MIRROR)
    assert torch.equal(after[fixed], before[fixed])
    assert largest_cosine(after, ORIGINALS) <= MAX_COSINE + 0.001


def test_close_latents_that_are_all_fixed_move_no_others(rng: torch.Generator) -> None:
    published = torch.eye(DIM)[:1].expand(2, -1)
    latents = torch.cat([published, torch.eye(DIM)[1:3]])
    fixed = torch.tensor([True, True, False, False])
    assert separate_latents(latents, tuple(range(4)), rng, fixed=fixed) is latents


@pytest.mark.parametrize("clips", [30, 60])
def test_without_room_latents_are_spread_as_far_as_they_go(
    clips: int, rng: torch.Generator
) -> None:
    before = normalize(
        torch.tensor([1.0, 0.0]) + 0.1 * torch.randn(clips, 2, generator=rng), dim=-1
    )
    after = separate_latents(before, tuple(range(clips)), rng)
    assert torch.isfinite(after).all()
    apart = (after @ after.T).fill_diagonal_(-1).amax(1)
    assert apart.mean() < (before @ before.T).fill_diagonal_(-1).amax(1).mean()
    assert (after @ after.T).min() < -0.9  # they reach around the circle


def test_equal_latents_are_moved_apart(rng: torch.Generator) -> None:
    after = separate_latents(torch.eye(DIM)[:1].expand(4, -1), tuple(range(4)), rng)
    assert largest_cosine(after, tuple(range(4))) <= MAX_COSINE
