"""The average velocity of worlds, and what of it is outside the range of their reference."""

from __future__ import annotations

from dataclasses import replace

import torch

from pretrain.assist.reference_blend import ReferenceBlend
from pretrain.assist.velocity_tracker import VelocityTracker


def states_of(library, clips):
    return library.at(clips, library.durations[clips] / 2)


def test_velocity_excess_is_below_1_in_playback_above_1_stopped(training_data):
    library = training_data.library
    clips = torch.arange(len(library.names))
    tracker = VelocityTracker(library, len(clips))
    at_once = ReferenceBlend(library.durations, 0 * library.durations, len(clips), 0)
    tracker.start(clips, clips, states_of(library, clips))
    for step in range(60):
        times = (library.durations[clips] / 2 + step / 30) % library.durations[clips]
        tracker.advance(library.at(clips, times), clips, at_once)
        assert tracker.excess().max() < 1
    state = states_of(library, clips)
    stopped = replace(state, root_vel=0 * state.root_vel, root_ang_vel=0 * state.root_ang_vel)
    for _ in range(30):
        tracker.advance(stopped, clips, at_once)
    assert tracker.excess().min() > 1


def test_start_sets_only_the_given_envs(training_data):
    library = training_data.library
    clips = torch.zeros(4, dtype=torch.long)
    tracker = VelocityTracker(library, 4)
    some = torch.tensor([1, 3])
    tracker.start(some, clips[some], states_of(library, clips[some]))
    assert not tracker.mean[[0, 2]].any()
    assert tracker.mean[some].any(-1).all()
    torch.testing.assert_close(tracker.excess(some), torch.zeros(2))
    torch.testing.assert_close(tracker.distance(clips[some], some), torch.zeros(2))


def from_run_to_walk(library, steps: int) -> tuple[VelocityTracker, torch.Tensor, ReferenceBlend]:
    """A world that ran, whose reference goes over to a walk in `steps`."""
    run = torch.tensor([library.names.index("run")])
    tracker = VelocityTracker(library, 1)
    tracker.start(torch.tensor([0]), run, states_of(library, run))
    blend = ReferenceBlend(library.durations, 0 * library.durations, 1, steps)
    blend.begin(torch.tensor([0]), run, torch.zeros(1), torch.tensor([steps > 0]))
    return tracker, torch.tensor([library.names.index("walk")]), blend


def test_a_blend_moves_the_range_as_fast_as_a_body_that_slows_down(training_data):
    library = training_data.library
    largest = {}
    for steps in (0, 30):
        tracker, walk, blend = from_run_to_walk(library, steps)
        state = states_of(library, walk)
        forward = state.root_vel / state.root_vel.norm()
        seen = []
        for step in range(60):
            blend.advance()
            share = min((step + 1) / 30, 1)
            speed = 3.53 + share * (0.96 - 3.53)  # m/s, from that of the run to that of the walk
            body = replace(state, root_vel=speed * forward, root_ang_vel=0 * state.root_ang_vel)
            tracker.advance(body, walk, blend)
            seen.append(float(tracker.excess()))
        assert tracker.distance(walk) < 1
        largest[steps] = max(seen)
    assert largest[30] < 1.5
    assert largest[0] > 3


def test_without_a_blend_the_range_changes_at_once(training_data):
    library = training_data.library
    tracker, walk, blend = from_run_to_walk(library, 0)
    tracker.advance(states_of(library, walk), walk, blend)
    torch.testing.assert_close(tracker.excess(), tracker.distance(walk))
    assert tracker.excess() > 1
