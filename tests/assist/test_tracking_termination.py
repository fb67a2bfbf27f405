"""The tracking error's limits, and how long a world may exceed them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from pretrain.ase.reference_windows import (
    ReferenceWindows,
    make_reference_windows,
    window_normalizer,
)
from pretrain.assist.curriculum import Curriculum
from pretrain.assist.tracking_termination import (
    TrackingLimits,
    TrackingTermination,
)

GRACE = 3
WORLDS = 8
FAR = torch.full((WORLDS,), 9.0)
NEAR = torch.zeros(WORLDS)
UP = torch.zeros(WORLDS, dtype=torch.bool)
DOWN = torch.ones(WORLDS, dtype=torch.bool)
CLIPS = torch.zeros(WORLDS, dtype=torch.long)


@pytest.fixture
def demos(training_data, skeleton):
    return make_reference_windows(training_data.library, skeleton, 3, rate=30.0)


def make(
    demos: ReferenceWindows, error: float = 1.0, *, assisted: bool = False, **changed: Any
) -> TrackingTermination:
    """Of clips without assistance, or of which all are `assisted` but the first. Limits may be
    `changed`."""
    limits = TrackingLimits(error, GRACE, recovery_window=GRACE, std_factor=0.0)
    limits = replace(limits, **changed)
    curriculum = Curriculum(torch.full(demos.counts.shape, 0.1), episode_length=300)
    curriculum.assist_strength[1:] = float(assisted)
    return TrackingTermination(demos, window_normalizer(demos).std, limits, curriculum, WORLDS)


def test_distance_is_0_on_the_clip_and_1_at_one_std(training_data, demos):
    termination = make(demos)
    assert termination.distance(demos.windows, demos.clip).max() < 0.05
    one = demos.windows[:1]
    assert termination.distance(one + termination.scale, demos.clip[:1]) == pytest.approx(
        1.0, abs=0.5
    )
    other = torch.full_like(demos.clip, training_data.library.names.index("run"))
    walking = demos.clip == training_data.library.names.index("walk")
    assert termination.distance(demos.windows, other)[walking].min() > 1.3  # a walk is no run


def test_error_limit_of_a_clip_grows_with_its_std(every_clip):
    demos = every_clip.demos
    termination = make(demos, 0.5, std_factor=1.2)
    for clip, name in enumerate(every_clip.library.names):
        windows = demos.windows[demos.clip == clip] / termination.scale
        std = float((windows - windows.mean(0)).square().mean().sqrt())
        limit = pytest.approx(max(1.2 * std, 0.5), rel=1e-4)
        assert termination.max_errors[clip] == limit, name
    shares = termination.share_of_limit(termination.max_errors / 2, torch.arange(len(demos.counts)))
    assert shares.tolist() == pytest.approx([0.5] * len(shares))


def test_phase_locked_short_error_spikes_do_not_terminate(demos):
    termination = make(demos)
    for _ in range(3):
        assert not termination.exceeded_at_phase(NEAR, CLIPS, UP).any()
        assert not any(termination.exceeded_at_phase(FAR, CLIPS, UP).any() for _ in range(GRACE))
    assert termination.exceeded_at_phase(FAR, CLIPS, UP).all()


def test_near_tracking_does_not_cut_the_grace_period_short(demos):
    termination = make(demos)
    termination.grace_steps[:] = GRACE + 5
    errors = (FAR, FAR, NEAR, FAR, *[FAR] * (GRACE + 1))
    assert not any(termination.exceeded_at_phase(error, CLIPS, UP).any() for error in errors)
    assert termination.exceeded_at_phase(FAR, CLIPS, UP).all()


def test_recovered_env_has_grace_steps_to_reach_its_clip(demos):
    termination = make(demos)
    assert not termination.exceeded_at_phase(FAR, CLIPS, DOWN).any()
    exceeded = [termination.exceeded_at_phase(FAR, CLIPS, UP) for _ in range(GRACE + 1)]
    assert not torch.stack(exceeded[:-1]).any()
    assert exceeded[-1].all()


def test_nearest_window_limit_skips_unchecked_and_grace_envs(demos):
    termination = make(demos, 1e-3, assisted=True)
    windows = demos.windows[:1].expand(WORLDS, -1) + termination.scale
    termination.start(torch.arange(WORLDS), torch.arange(WORLDS) < 4)  # these have the grace period
    checked = torch.arange(WORLDS) % 2 == 0
    first = termination.exceeded_nearest(windows, CLIPS + 1, checked)
    assert first.nonzero()[:, 0].tolist() == [4, 6]
    for _ in range(GRACE - 1):
        last = termination.exceeded_nearest(windows, CLIPS + 1, checked)
    assert torch.equal(last, checked)


def test_phase_locking_is_applied_per_clip(demos):
    """The first world's clip is phase-locked, the second's is not."""
    termination = make(demos, 1e-3, assisted=True)
    clips = torch.tensor([0, 1] * (WORLDS // 2))
    windows = demos.windows[:1].expand(WORLDS, -1) + termination.scale
    assert not termination.exceeded_at_phase(FAR, clips, UP)[1::2].any()
    nearest = termination.exceeded_nearest(windows, clips, ~UP)
    assert nearest.tolist() == [False, True] * (WORLDS // 2)


def test_a_velocity_is_outside_only_where_it_is_bounded(demos):
    excess = torch.tensor([0.0, 0.9, 1.1])
    unbounded = make(demos)
    assert not unbounded.exceeds_velocity_bound(excess).any()
    bounded = make(demos, max_velocity_excess=1.0)
    assert bounded.exceeds_velocity_bound(excess).tolist() == [False, False, True]
