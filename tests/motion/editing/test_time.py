"""Edits along time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.characters.rotations import from_axis_angle, heading_direction
from pretrain.motion.clip import ClipError
from pretrain.motion.editing import time


def steps(clip) -> np.ndarray:
    """The fastest body from each frame to the next, m/s."""
    return np.linalg.norm(np.diff(clip.world_poses[0], axis=0), axis=-1).max(-1) * clip.fps


def test_trim_has_the_requested_duration_and_start(stroll):
    part = time.trim(stroll, 1.0, 2.5)
    assert part.duration == pytest.approx(1.5)
    np.testing.assert_array_equal(part.root_pos[0], stroll.root_pos[30])


@pytest.mark.parametrize(("start", "stop"), [(1, 99), (2, 1), (1, 1)])
def test_trim_outside_the_clip_is_refused(stroll, start, stop):
    with pytest.raises(ClipError, match=r"but it lasts 5\.40 s"):
        time.trim(stroll, start, stop)


def test_reverse_twice_is_the_identity(stroll):
    twice = time.reverse(time.reverse(stroll))
    np.testing.assert_array_equal(twice.root_pos, stroll.root_pos)


def test_speed_2_halves_the_duration_over_the_same_path(stroll):
    fast = time.speed(stroll, 2.0)
    assert fast.fps == stroll.fps
    assert fast.duration == pytest.approx(stroll.duration / 2, abs=0.04)
    np.testing.assert_allclose(fast.root_pos[-1], stroll.root_pos[-1], atol=0.05)


def test_a_held_frame_does_not_move(stroll):
    held = time.hold(stroll, 1.0, 2.0)
    assert held.duration == pytest.approx(2.0)
    assert steps(held).max() == 0


def test_a_clip_at_home_begins_at_the_origin_and_faces_x(stroll):
    home = time.homed(time.trim(stroll, 1.0, 3.0))
    np.testing.assert_allclose(home.root_pos[0, :2], 0, atol=1e-12)
    np.testing.assert_allclose(heading_direction(home.root_rot[0]), [1, 0], atol=1e-6)


def test_a_splice_goes_on_without_a_jump(stroll, still):
    both = time.splice(stroll, time.hold(still, 1.0, 2.0), 0.5)
    assert both.duration == pytest.approx(stroll.duration + 2.0 - 0.5, abs=0.05)
    assert steps(both).max() < 1.5 * steps(stroll).max()
    assert steps(both)[-20:].max() < 1e-9


def test_a_splice_heads_where_the_first_clip_does(stroll):
    turned = time.turned(stroll, 1.2)
    both = time.splice(turned, stroll, 0.3)
    way = both.root_pos[-1, :2] - both.root_pos[len(turned), :2]
    assert np.arctan2(way[1], way[0]) == pytest.approx(1.2, abs=0.25)


def test_clips_of_two_rates_are_not_spliced(stroll):
    with pytest.raises(ClipError, match="resample one"):
        time.splice(stroll, replace(stroll, fps=60.0), 0.3)


def test_a_walk_repeated_goes_on_at_its_pace(stroll):
    thrice = time.repeat(stroll, 3, 0.2)
    pace = np.linalg.norm(thrice.root_pos[-1] - thrice.root_pos[0]) / thrice.duration
    assert pace == pytest.approx(
        np.linalg.norm(stroll.root_pos[-1] - stroll.root_pos[0]) / stroll.duration, rel=0.05
    )
    assert steps(thrice).max() < 1.3 * steps(stroll).max()
    assert thrice.duration > 2 * stroll.duration * 0.7


def test_repeat_refuses_a_clip_that_is_too_short(stroll):
    with pytest.raises(ClipError, match="too short to repeat"):
        time.repeat(time.trim(stroll, 0, 0.3), 2, 0.2)


def test_a_periodic_clip_repeats_with_its_own_period(still):
    phase = 2 * np.pi * np.arange(75) / 30
    swinging = from_axis_angle("y", 0.3 * np.sin(phase))
    clip = time.hold(still, 1.0, 74 / still.fps)
    clip = replace(clip, joint_rot=clip.joint_rot | {"left_thigh": swinging})
    thigh = time.repeat(clip, 3, 0.2).joint_rot["left_thigh"]
    np.testing.assert_allclose(thigh[30:], thigh[:-30], atol=1e-9)
