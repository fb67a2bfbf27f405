"""Velocity ranges of the clips, and averages of a motion's velocity."""

from __future__ import annotations

import pytest
import torch

from pretrain.characters.state import unflatten
from pretrain.sim.velocity_range import (
    AVERAGED_STEPS,
    MIN_MARGIN,
    average,
    level_velocity,
    read_velocity_ranges,
    trailing_mean,
)


@pytest.fixture(scope="module")
def ranges(training_data):
    return read_velocity_ranges(training_data.library)


def test_clip_velocities_are_within_their_own_range(training_data, ranges):
    parts = training_data.library.clip_frames
    for clip, frames in enumerate(parts):
        means = trailing_mean(level_velocity(unflatten(frames)))
        assert ranges.excess(means, torch.full((len(means),), clip)).max() < 1e-5


def test_a_body_that_stands_still_is_outside_every_walk_and_run(training_data, ranges):
    clips = torch.arange(len(training_data.library.names))
    still = torch.zeros(len(clips), 3)
    assert ranges.excess(still, clips).min() > 2


def test_a_mirror_image_turns_the_other_way(training_data, ranges):
    images = torch.tensor(training_data.library.images)
    other = torch.tensor([1.0, -1.0, -1.0])
    torch.testing.assert_close(ranges.low[images] * other, ranges.high.where(other < 0, ranges.low))
    torch.testing.assert_close(ranges.margin[images], ranges.margin)


def test_excess_is_1_at_one_margin_beyond_the_range(ranges):
    clips = torch.zeros(3, dtype=torch.long)
    outside = ranges.high[:1] + torch.diag(ranges.margin[0])
    torch.testing.assert_close(ranges.excess(outside, clips), torch.ones(3))
    torch.testing.assert_close(ranges.clamp(outside, clips), ranges.high[:1].expand(3, -1))


def test_margins_have_a_minimum_and_grow_with_speed(training_data, ranges):
    least = torch.tensor(MIN_MARGIN)
    assert (ranges.margin >= least).all()
    run = training_data.library.names.index("run")
    walk = training_data.library.names.index("walk")
    assert ranges.margin[run, 0] > ranges.margin[walk, 0]


def test_trailing_mean_covers_1_s_and_pads_with_the_first_window():
    ramp = torch.arange(100.0)[:, None]
    means = trailing_mean(ramp)[:, 0]
    assert means[-1] == ramp[-AVERAGED_STEPS:].mean()
    assert (means[:AVERAGED_STEPS] == ramp[:AVERAGED_STEPS].mean()).all()
    assert (trailing_mean(ramp[:4])[:, 0] == 1.5).all()


def test_an_average_follows_a_change_within_about_a_second():
    mean = torch.zeros(1, 3)
    for _ in range(AVERAGED_STEPS):
        mean = average(mean, torch.ones(1, 3))
    assert 0.8 < float(mean[0, 0]) < 0.95
