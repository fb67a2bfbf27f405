"""Jerk of motions whose third derivative is known."""

from __future__ import annotations

import pytest
import torch

from pretrain.evaluation.jerk import clip_jerk, jerk

WALK = 0
RUN = 2


def test_jerk_of_a_polynomial_is_its_third_derivative():
    t = torch.arange(30, dtype=torch.float64) / 30
    motion = torch.stack([t**3, 2 * t**2, t], -1)[:, None]  # third derivatives 6, 0, 0
    assert jerk(motion, 30.0).tolist() == pytest.approx([2.0], rel=1e-6)


def test_run_has_over_twice_the_jerk_of_the_walk(library):
    assert clip_jerk(library, [RUN]) > 2 * clip_jerk(library, [WALK])
