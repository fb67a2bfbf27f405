"""ReferenceWindows: the clips' style windows, for discriminator and encoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.rl.nets import Normalizer
from pretrain.sim.features import measure_std
from pretrain.sim.start_states import draw_rows, read_rate
from pretrain.sim.style_windows import read_style_windows


@dataclass(frozen=True)
class ReferenceWindows:
    """Style windows of every clip, read densely in time, one clip after the other."""

    windows: Tensor  # (M, W * F)
    clip: Tensor  # (M,) clip index of each
    counts: Tensor  # (C,) windows of each clip

    def sample(self, clips: Tensor, rng: Generator) -> Tensor:
        """A random window of each of `clips` (n,), (n, W * F)."""
        return self.windows.index_select(0, draw_rows(self.counts, clips, rng))

    def sample_any(self, n: int, rng: Generator) -> Tensor:
        """n windows, uniform over those of all clips, (n, W * F)."""
        return self.windows.index_select(0, torch.randint(len(self.windows), (n,), generator=rng))


def make_reference_windows(
    library: MotionLibrary, skeleton: Skeleton, steps: int, rate: float | None = None
) -> ReferenceWindows:
    """Every window of `steps` frames that ends on a grid of 1/rate s and lies wholly inside its
    clip, which is at least as long (`load_training_data` refuses others).

    `rate` is that of `read_rate` if none is given.
    """
    rate = rate or read_rate(library)
    clips: list[Tensor] = []
    ends: list[Tensor] = []
    for c, duration in enumerate(library.durations.tolist()):
        times = torch.arange((steps - 1) / CONTROL_RATE, duration + 1e-6, 1 / rate)
        clips.append(torch.full((len(times),), c))
        ends.append(times)
    clip = torch.cat(clips)
    frames = read_style_windows(library, skeleton, clip, torch.cat(ends), steps)
    return ReferenceWindows(frames.flatten(1), clip, torch.bincount(clip))


def window_normalizer(demos: ReferenceWindows) -> Normalizer:
    """Fixed by the clips: a running normalizer would shift the encoder's inputs during training."""
    return Normalizer(demos.windows.mean(0), measure_std(demos.windows), clip=8.0)
