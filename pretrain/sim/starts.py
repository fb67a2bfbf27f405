"""Where episodes may begin: states of the clips, with the frames that led there and what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame

RATE = 120.0  # Hz, at which clips are read
MOST_ROWS = 200_000  # states of all clips; beyond, they are read at a lower rate, down to the control rate


def read_rate(library: MotionLibrary) -> float:
    """Hz at which the clips of `library` are read. Memory and time grow with the number of states that are kept."""
    seconds = max(float(library.durations.sum()), 1.0)
    return min(RATE, max(CONTROL_RATE, MOST_ROWS / seconds))


def draw_rows(counts: Tensor, clips: Tensor, rng: Generator) -> Tensor:
    """Of `counts` (C,) rows of each clip, one clip after the other: one for each of `clips` (n,), (n,)."""
    first = torch.cumsum(counts, 0) - counts
    return first[clips] + (torch.rand(len(clips), generator=rng) * counts[clips]).long()


@dataclass(frozen=True)
class Starts:
    """Windows of W states, oldest first, one clip after the other.

    Worlds end and begin a few at a time; reading a clip and looking at it then took a tenth of a run, nearly all of it in
    calling kernels.
    """

    states: Tensor  # (M, W, S)
    frames: Tensor  # (M, W, F)
    times: Tensor  # (M,) s in their clips
    counts: Tensor  # (C,) windows of each clip
    rate: float  # Hz, of `times` within a clip

    def draw(self, clips: Tensor, rng: Generator) -> Tensor:
        """A row for each of `clips` (n,), any of its moments as likely as another, (n,)."""
        return draw_rows(self.counts, clips, rng)


def clip_starts(library: MotionLibrary, skeleton: Skeleton, window: int) -> Starts:
    """Every clip at `read_rate`, 120 Hz if they are not very long."""
    rate = read_rate(library)
    each = [torch.arange(0, duration + 1e-6, 1 / rate) for duration in library.durations.tolist()]
    counts = torch.tensor([len(of_clip) for of_clip in each])
    clips, times = torch.arange(len(counts)).repeat_interleave(counts), torch.cat(each)
    return looked_at(library.windows(clips, times, window), skeleton, times, counts, rate)


def still_starts(lying: CharacterState, skeleton: Skeleton, window: int) -> Starts:
    """States (K,) that have not moved for a window, as if of one clip."""
    still = lying.map(lambda x: x[:, None].expand(-1, window, -1))
    n = len(lying.root_pos)
    return looked_at(still, skeleton, torch.zeros(n), torch.tensor([n]), RATE)


def looked_at(windows: CharacterState, skeleton: Skeleton, times: Tensor, counts: Tensor, rate: float) -> Starts:
    """Windows of states (M, W) at `times` (M,) s, with their style frames."""
    frames = style_frame(skeleton, windows).contiguous()
    return Starts(windows.flat().contiguous(), frames, times, counts, rate)
