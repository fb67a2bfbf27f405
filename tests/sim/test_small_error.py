"""A unit of tracking errors: the distance of a slightly disturbed motion."""

from __future__ import annotations

import pytest
import torch

from pretrain.ase.reference_windows import window_normalizer
from pretrain.characters.state import unflatten
from pretrain.sim.small_error import small_error


def test_small_error_is_in_units_of_the_scale(training_data, skeleton):
    states = unflatten(training_data.library.frames)
    scale = window_normalizer(training_data.demos).std
    found = small_error(skeleton, states, scale, 3)
    assert small_error(skeleton, states, 2 * scale, 3) == pytest.approx(found / 2)


def test_a_walk_and_a_run_have_the_same_unit_within_a_tenth(training_data, skeleton):
    library = training_data.library
    scale = torch.ones(training_data.demos.windows.shape[1])
    ends = torch.cumsum(library.lengths, 0)
    units = []
    for name in ("walk", "run"):
        clip = library.names.index(name)
        rows = slice(int(ends[clip] - library.lengths[clip]), int(ends[clip]))
        units.append(small_error(skeleton, unflatten(library.frames[rows]), scale, 3))
    assert units[0] == pytest.approx(units[1], rel=0.1)
