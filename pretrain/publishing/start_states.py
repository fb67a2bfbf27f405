"""Start states of a published version: excerpts of the training clips in one file of numbers.

With them a controller can be trained on a pulled library without its training clips."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pretrain.motion.library import MotionLibrary
from skills_store.manifest import Excerpt, Manifest, Starts

FILE = "starts.f32"
EXCERPT = 60  # frames of an excerpt, of a clip too long to be published whole
FLOAT32 = np.dtype("<f4")


def write_starts(library: MotionLibrary, upright: Tensor, most: int) -> tuple[Starts, bytes]:
    """Excerpts of `library`, about `most` frames in all, and their bytes.

    `upright` (C,) bool marks clips that keep the root upright throughout. Clips are published whole
    where all of them fit into `most` frames, and otherwise as excerpts of 60 frames, evenly spaced,
    each clip by its share of the frames."""
    share = min(1.0, most / len(library.frames))
    excerpts: list[Excerpt] = []
    parts: list[Tensor] = []
    clips = zip(library.names, library.clip_frames, upright.tolist(), strict=True)
    for name, frames, stays_upright in clips:
        for part in cut(frames, share):
            excerpts.append(Excerpt(clip=name, frames=len(part), upright=stays_upright))
            parts.append(part)
    data = torch.cat(parts).numpy().astype(FLOAT32).tobytes()
    return Starts(file=FILE, excerpts=tuple(excerpts)), data


def cut(frames: Tensor, share: float) -> list[Tensor]:
    """`share` of a clip's frames (T, S): all of them, or excerpts that are evenly spaced."""
    if share == 1.0 or len(frames) <= EXCERPT:
        return [frames]
    count = max(1, math.floor(share * len(frames) / EXCERPT))
    firsts = torch.linspace(0, len(frames) - EXCERPT, count).long().tolist()
    return [frames[first : first + EXCERPT] for first in firsts]


def read_starts(manifest: Manifest, data: bytes) -> MotionLibrary:
    """The excerpts as clips, each with its part of its clip's weight. Raises ValueError where the
    manifest has none."""
    if manifest.starts is None:
        raise ValueError(
            f"{manifest.name} was published without start states: no episode can begin"
        )
    excerpts = manifest.starts.excerpts
    lengths = torch.tensor([excerpt.frames for excerpt in excerpts])
    width = manifest.graphs["policy"].input("state").width
    frames = torch.from_numpy(
        np.frombuffer(data, FLOAT32).reshape(int(lengths.sum()), width).copy()
    )
    weights = clip_weights(manifest, excerpts)
    names = [f"{excerpt.clip}#{i}" for i, excerpt in enumerate(excerpts)]
    firsts = torch.cumsum(lengths, 0) - lengths
    return MotionLibrary(tuple(names), frames, firsts, lengths, weights, tuple(range(len(names))))


def clip_weights(manifest: Manifest, excerpts: tuple[Excerpt, ...]) -> Tensor:
    """The weight of each excerpt (E,), sum 1: its clip's weight in training, shared by that clip's
    excerpts."""
    of_clip = {clip.name: clip.weight for clip in manifest.lineage.clips}
    names = [excerpt.clip for excerpt in excerpts]
    weights = torch.tensor([of_clip.get(name, 1.0) / names.count(name) for name in names])
    return weights / weights.sum()


def upright_excerpts(manifest: Manifest) -> Tensor:
    """Which excerpts are of clips that stay upright, (E,) bool."""
    assert manifest.starts is not None
    return torch.tensor([excerpt.upright for excerpt in manifest.starts.excerpts])
