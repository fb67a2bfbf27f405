"""The average velocity of worlds, and what of it is outside the range of their clip."""

from __future__ import annotations

from dataclasses import replace

import torch

from pretrain.assist.velocity_tracker import VelocityTracker


def states_of(library, clips):
    return library.at(clips, library.durations[clips] / 2)


def test_velocity_excess_is_below_1_in_playback_above_1_stopped(training_data):
    library = training_data.library
    clips = torch.arange(len(library.names))
    tracker = VelocityTracker(library, len(clips))
    tracker.start(clips, clips, states_of(library, clips))
    for step in range(60):
        times = (library.durations[clips] / 2 + step / 30) % library.durations[clips]
        tracker.advance(library.at(clips, times))
        assert tracker.excess(clips).max() < 1
    state = states_of(library, clips)
    stopped = replace(state, root_vel=0 * state.root_vel, root_ang_vel=0 * state.root_ang_vel)
    for _ in range(30):
        tracker.advance(stopped)
    assert tracker.excess(clips).min() > 1


def test_only_the_worlds_that_begin_are_set(training_data):
    library = training_data.library
    clips = torch.zeros(4, dtype=torch.long)
    tracker = VelocityTracker(library, 4)
    some = torch.tensor([1, 3])
    tracker.start(some, clips[some], states_of(library, clips[some]))
    assert not tracker.mean[[0, 2]].any()
    assert tracker.mean[some].any(-1).all()
    torch.testing.assert_close(tracker.excess(clips[some], some), torch.zeros(2))
