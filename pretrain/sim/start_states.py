"""Start states of episodes: states of the clips, each with the states and style frames before
it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.kinematics import lowest_points
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame
from pretrain.sim.style_windows import read_style_windows, window_blocks

RATE = 120.0  # Hz at which clips are read
# states of all clips; longer clips are read at a lower rate, at least the control rate
MAX_ROWS = 200_000


def read_rate(library: MotionLibrary) -> float:
    """Hz at which the clips of `library` are read. Memory and time grow with the number of states
    that are kept."""
    seconds = max(float(library.durations.sum()), 1.0)
    return min(RATE, max(CONTROL_RATE, MAX_ROWS / seconds))


def draw_rows(counts: Tensor, clips: Tensor, rng: Generator) -> Tensor:
    """A random row for each of `clips` (n,), (n,), among the concatenated rows of the clips,
    `counts` (C,) of each."""
    first = torch.cumsum(counts, 0) - counts
    return first[clips] + (torch.rand(len(clips), generator=rng) * counts[clips]).long()


@dataclass(frozen=True)
class StartStates:
    """Windows of W states, oldest first, concatenated over the clips.

    Worlds are reset a few at a time. Reading the clip and computing its features at each reset took
    a tenth of a run, nearly all of it in the overhead of kernel calls.
    """

    states: Tensor  # (M, W, S)
    frames: Tensor  # (M, W, F)
    times: Tensor  # (M,) s in their clips
    counts: Tensor  # (C,) windows of each clip
    rate: float  # Hz, of `times` within a clip

    def draw(self, clips: Tensor, rng: Generator) -> Tensor:
        """A random row of each of `clips` (n,), uniform in time, (n,)."""
        return draw_rows(self.counts, clips, rng)


def read_start_states(library: MotionLibrary, skeleton: Skeleton, window: int) -> StartStates:
    """Every clip at `read_rate`, 120 Hz if they are not very long."""
    rate = read_rate(library)
    grids = [torch.arange(0, duration + 1e-6, 1 / rate) for duration in library.durations.tolist()]
    counts = torch.tensor([len(grid) for grid in grids])
    clips = torch.arange(len(counts)).repeat_interleave(counts)
    times = torch.cat(grids)
    states = torch.empty(len(times), window, 13 + 2 * skeleton.num_hinges)
    for rows, block in window_blocks(library, clips, times, window):
        states[rows] = block.flatten()
    frames = read_style_windows(library, skeleton, clips, times, window)
    return StartStates(states, frames, times, counts, rate)


def repeat_start_states(states: CharacterState, skeleton: Skeleton, window: int) -> StartStates:
    """States (K,) held for a window, as of one clip."""
    windows = states.map(lambda x: x[:, None].expand(-1, window, -1))
    n = len(states.root_pos)
    return make_start_states(windows, skeleton, torch.zeros(n), torch.tensor([n]), RATE)


def default_state(skeleton: Skeleton) -> CharacterState:
    """All joints at 0 and the root upright, at rest, with the lowest body on the ground, (1)."""
    hinges = torch.zeros(1, skeleton.num_hinges)
    still = torch.zeros(1, 3)
    upright = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    state = CharacterState(still, upright, still, still, hinges, hinges)
    lowest = lowest_points(skeleton, state).amin(-1)
    height = torch.tensor([0.0, 0.0, 1.0]) * -lowest[:, None]
    return CharacterState(height, upright, still, still, hinges, hinges)


def make_start_states(
    windows: CharacterState, skeleton: Skeleton, times: Tensor, counts: Tensor, rate: float
) -> StartStates:
    """Windows of states (M, W) at `times` (M,) s, with their style frames."""
    frames = style_frame(skeleton, windows).contiguous()
    return StartStates(windows.flatten().contiguous(), frames, times, counts, rate)
