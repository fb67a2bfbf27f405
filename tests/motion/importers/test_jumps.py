"""Jumps of the root are told at the file's own rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pretrain.characters.rotations import from_axis_angle, multiply
from pretrain.motion.importers import read_clip
from pretrain.motion.importers.jumps import find_jumps
from tests.motion.importers import made


def test_a_clip_that_moves_as_people_do_has_none(stroll):
    assert not find_jumps(stroll)


def test_a_step_and_a_turn_in_one_frame_are_named_with_their_frames(stroll):
    position = stroll.root_pos.copy()
    position[50:, 0] += 1.0
    (line,) = find_jumps(replace(stroll, root_pos=position))
    assert "the root jumps by 1.0" in line
    assert "from frame 49 to 50, 3" in line
    turned = stroll.root_rot.copy()
    turned[80:] = multiply(from_axis_angle("z", np.full(len(turned) - 80, 2.5)), turned[80:])
    (line,) = find_jumps(replace(stroll, root_rot=turned))
    assert "degrees from frame 79 to 80" in line


def test_a_jump_is_named_though_resampling_would_spread_it(stroll, skeleton):
    frames = made.mimickit_frames(stroll)
    frames[60:, 5] += np.radians(51)  # yaw
    data = made.mimickit(stroll, frames=frames, fps=120)
    lines = read_clip(data, "a.pkl", skeleton).warnings
    assert any("degrees from frame 59 to 60, 1" in line for line in lines)
