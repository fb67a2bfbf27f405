"""Jumps of the root are found at the file's own rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clip_files import formats
from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.feasibility import find_infeasible
from pretrain.motion.importers import read_clip
from pretrain.motion.importers.jumps import find_jumps


@pytest.fixture
def quick(stroll):
    """A walk at four times the control rate."""
    return replace(stroll.resampled(120), fps=120)


def test_plausible_clip_has_no_jumps(quick):
    assert not find_jumps(quick)


def test_position_and_rotation_jumps_report_their_times(quick):
    position = quick.root_pos.copy()
    position[50:, 0] += 1.0
    (line,) = find_jumps(replace(quick, root_pos=position))
    assert "the root jumps by 1.0" in line
    assert "after 0.41 s, 12" in line
    turned = quick.root_rot.copy()
    turned[80:] = multiply(from_axis_angle("z", np.full(len(turned) - 80, 0.9)), turned[80:])
    (line,) = find_jumps(replace(quick, root_rot=turned))
    assert "degrees after 0.66 s" in line


def test_jumps_at_the_control_rate_are_left_to_feasibility_check(stroll):
    position = stroll.root_pos.copy()
    position[50:, 0] += 1.0
    jumping = replace(stroll, root_pos=position)
    assert not find_jumps(jumping)
    assert find_infeasible(jumping)


def test_jump_is_reported_at_the_rate_of_the_file(stroll, skeleton):
    frames = formats.mimickit_frames(stroll)
    frames[60:, 5] += np.radians(51)  # yaw
    data = formats.mimickit(stroll, frames=frames, fps=120)
    lines = read_clip(data, "a.pkl", skeleton).warnings
    assert any("degrees after 0.49 s, 1" in line for line in lines)
