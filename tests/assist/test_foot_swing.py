"""Which feet are in the air."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.assist.foot_swing import FootSwing, find_steps, foot_heights
from pretrain.sim.start_states import read_start_states

LATE = 24  # rows of the start states, 0.2 s


@pytest.fixture
def starts(training_data, skeleton):
    return read_start_states(training_data.library, skeleton, 3)


def test_a_foot_in_the_air_is_higher_than_one_that_stands(starts, skeleton, training_data):
    walk = training_data.library.names.index("walk")
    frames = starts.frames[:, -1].split(starts.counts.tolist())[walk]
    heights = foot_heights(skeleton, frames)
    assert heights.shape == (len(frames), 2)
    assert (heights.amin(0) < 0.1).all()  # m
    assert (heights.amax(0) > 0.15).all()


def test_playback_lifts_feet_when_the_clip_does(starts, skeleton):
    frames = starts.frames[:, -1]
    feet = FootSwing(skeleton, starts)
    rows = torch.arange(len(frames))
    assert feet.match(frames, rows).mean() > 0.9
    assert feet.match(frames, (rows + LATE) % len(rows)).mean() < 0.7


def test_foot_match_is_0_when_standing_and_less_for_swapped_feet(starts, skeleton, training_data):
    walk = training_data.library.names.index("walk")
    first = int(starts.counts[:walk].sum())
    rows = torch.arange(first, first + int(starts.counts[walk]))
    frames = starts.frames[rows, -1]
    feet = FootSwing(skeleton, starts)
    keys = frames.shape[-1] - 3 * len(skeleton.key_bodies)
    upward = [keys + 3 * skeleton.key_bodies.index(foot) + 2 for foot in skeleton.feet]
    swapped = frames.clone()
    swapped[:, upward] = frames[:, upward[::-1]]
    standing = frames.clone()
    standing[:, upward] = 0.05 - frames[:, :1]  # m above the ground, relative to the root
    assert feet.match(standing, rows).mean() == pytest.approx(0.0, abs=0.1)
    assert feet.match(swapped, rows).mean() < -0.2


def test_rests_are_no_steps():
    lifted = torch.zeros(20, 2)
    lifted[10:12, 1] = 1.0
    assert find_steps(lifted, 3).nonzero()[:, 0].tolist() == list(range(7, 15))
    assert find_steps(torch.zeros(20, 2), 3).all()


def test_a_step_after_a_rest_weighs_as_one_of_a_clip_without_rests(starts, skeleton, training_data):
    walk = training_data.library.names.index("walk")
    first = int(starts.counts[:walk].sum())
    frames = starts.frames[first : first + int(starts.counts[walk])]
    stood = frames[:1].clone()
    keys = frames.shape[-1] - 3 * len(skeleton.key_bodies)
    upward = [keys + 3 * skeleton.key_bodies.index(foot) + 2 for foot in skeleton.feet]
    lowest = foot_heights(skeleton, frames[:, -1]).amin()
    stood[:, :, upward] = lowest - stood[..., :1]
    rested = torch.cat([stood.expand(400, -1, -1), frames])
    for clip in (frames, rested):
        feet = FootSwing(skeleton, replace(starts, frames=clip, counts=torch.tensor([len(clip)])))
        stepping = feet.stepping.nonzero()[:, 0]
        standing = stood[:, -1].expand(len(stepping), -1)
        assert feet.match(standing, stepping).mean() == pytest.approx(0.0, abs=0.1)
