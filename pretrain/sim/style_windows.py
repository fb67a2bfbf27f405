"""Style windows of clips, read a block at a time: an hour of motion in one block takes gigabytes of
intermediate results."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame

ROWS = 8192  # windows of a block


def window_blocks(
    library: MotionLibrary, clips: Tensor, times: Tensor, window: int
) -> Iterator[tuple[slice, CharacterState]]:
    """The windows of clips (M,) that end at `times` (M,) s: consecutive rows, and their states
    (n, window, ...)."""
    for start in range(0, len(times), ROWS):
        rows = slice(start, start + ROWS)
        yield rows, library.windows(clips[rows], times[rows], window)


def read_style_windows(
    library: MotionLibrary, skeleton: Skeleton, clips: Tensor, times: Tensor, window: int
) -> Tensor:
    """The style frames of the windows of clips (M,) that end at `times` (M,) s, (M, window, F)."""
    frames: Tensor | None = None
    for rows, states in window_blocks(library, clips, times, window):
        block = style_frame(skeleton, states)
        if frames is None:
            frames = torch.empty(len(times), *block.shape[1:])
        frames[rows] = block
    assert frames is not None  # a library has a clip, and a clip a window
    return frames
