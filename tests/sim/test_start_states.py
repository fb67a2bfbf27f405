"""Start states of episodes."""

from __future__ import annotations

import torch

from pretrain.characters.state import unflatten
from pretrain.sim.features import style_frame
from pretrain.sim.start_states import RATE, read_start_states, repeat_start_states


def test_start_states_match_library_windows(library, skeleton):
    starts = read_start_states(library, skeleton, 3)
    walk = library.names.index("walk")
    before = int(starts.counts[:walk].sum())
    times = torch.arange(int(starts.counts[walk])) / RATE
    windows = library.windows(torch.full_like(times, walk, dtype=torch.long), times, 3)
    rows = slice(before, before + len(times))
    torch.testing.assert_close(starts.states[rows], windows.flatten(), atol=1e-4, rtol=0)
    torch.testing.assert_close(
        starts.frames[rows], style_frame(skeleton, windows), atol=1e-5, rtol=0
    )
    assert len(times) == int(library.durations[walk] * RATE + 1e-3) + 1
    assert starts.counts.sum() == len(starts.states) == len(starts.frames)


def test_a_draw_is_of_the_given_clip_and_reaches_all_of_it(library, skeleton, rng):
    starts = read_start_states(library, skeleton, 3)
    last = torch.cumsum(starts.counts, 0)
    clips = torch.arange(len(starts.counts)).repeat_interleave(4000)
    rows = starts.draw(clips, rng)
    assert ((rows >= (last - starts.counts)[clips]) & (rows < last[clips])).all()
    assert rows.unique().numel() > 0.99 * len(starts.states)


def test_repeated_start_states_have_not_moved(library, skeleton):
    lying = unflatten(library.frames[:5])
    starts = repeat_start_states(lying, skeleton, 3)
    assert starts.counts.tolist() == [5]
    for i in range(3):
        assert torch.equal(starts.states[:, i], lying.flatten())
        torch.testing.assert_close(
            starts.frames[:, i], style_frame(skeleton, lying), atol=1e-5, rtol=0
        )
