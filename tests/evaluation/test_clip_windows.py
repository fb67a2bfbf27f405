"""Tolerance and coverage, for the clips themselves and for other motions."""

from __future__ import annotations

import pytest
import torch

from pretrain.ase.reference_windows import make_reference_windows
from pretrain.evaluation.clip_windows import clip_windows, feature_scale
from pretrain.evaluation.coverage import Coverage
from pretrain.evaluation.tolerance import step_distance
from pretrain.motion.clip import CONTROL_RATE
from pretrain.sim.style_windows import read_style_windows
from pretrain.training_data import load_training_data
from tests.evaluation import playback

WINDOW = 3


@pytest.fixture(scope="module")
def scale(training_data):
    return feature_scale(training_data.library, training_data.character.skeleton, WINDOW)


@pytest.fixture(scope="module")
def targets(training_data, scale):
    return clip_windows(training_data.dataset.clips, scale, WINDOW)


def test_every_clip_that_is_no_mirror_image_has_a_tolerance(targets, training_data):
    originals = [clip.name for clip in training_data.dataset.originals]
    assert [target.name for target in targets] == originals
    assert min(target.tau for target in targets) > 1


def test_tolerance_is_floored_and_grows_with_clip_std(targets):
    """Identical cycles have a std of 0, which no simulated motion could meet."""
    data = playback.training_data()
    scale = feature_scale(data.library, data.character.skeleton, WINDOW)
    floors = [target.tau for target in clip_windows(data.dataset.clips, scale, WINDOW)]
    assert max(floors) < 1.1 * min(floors)
    taus = {target.name: target.tau for target in targets}
    assert taus["run"] > 2 * taus["walk"]  # the walk is one cycle, and its own mirror image


def test_the_tolerance_of_a_clip_is_the_same_every_time(training_data, scale, targets):
    again = clip_windows(training_data.dataset.clips, scale, WINDOW)
    assert [target.tau for target in again] == [target.tau for target in targets]


def test_clip_is_within_its_tolerance_and_other_postures_are_not():
    data = playback.training_data()
    scale = feature_scale(data.library, data.character.skeleton, WINDOW)
    stand, *others = clip_windows(data.dataset.clips, scale, WINDOW)
    assert stand.within(stand.windows).all()
    for other in others:
        assert not stand.within(other.windows).any()


def test_playback_between_the_control_steps_is_within_the_tolerance(skeleton):
    """`run_fast` repeats one cycle of 0.7 s."""
    data = load_training_data("humanoid", "everyday", WINDOW)
    scale = feature_scale(data.library, skeleton, WINDOW)
    for target in clip_windows(data.dataset.clips, scale, WINDOW):
        clip = data.library.names.index(target.name)
        ends = (WINDOW - 0.5 + torch.arange(len(target.windows) - 1)) / CONTROL_RATE
        clips = torch.full_like(ends, clip, dtype=torch.long)
        played = read_style_windows(data.library, skeleton, clips, ends, WINDOW)
        assert target.within(played.flatten(1) / scale).float().mean() > 0.95, target.name


def test_only_repeated_copies_have_the_tolerance_of_one_control_step(skeleton):
    data = load_training_data("humanoid", "everyday", WINDOW)
    scale = feature_scale(data.library, skeleton, WINDOW)
    targets = clip_windows(data.dataset.clips, scale, WINDOW)
    ratios = {target.name: target.tau / step_distance(target.windows) for target in targets}
    assert [ratios[name] for name in ("jog", "run", "run_fast")] == [1.0, 1.0, 1.0]
    captured = ("walk_slow", "walk", "walk_on", "walk_brisk", "arc", "back", "side_fast")
    assert all(1.25 < ratios[name] < 3.5 for name in captured), ratios


def test_playback_covers_all_clips_and_standing_still_does_not(
    training_data, skeleton, targets, scale
):
    played = Coverage(targets, scale)
    still = Coverage(targets, scale)
    windows = make_reference_windows(training_data.library, skeleton, WINDOW, rate=30.0).windows
    played.update(windows)
    still.update(windows[:1].expand(50, -1))
    assert min(played.per_clip().values()) == 1.0
    assert sum(still.per_clip().values()) / len(targets) < 0.3


def test_one_clip_covers_itself_more_than_another_kind_of_motion(
    training_data, skeleton, targets, scale
):
    coverage = Coverage(targets, scale)
    demos = make_reference_windows(training_data.library, skeleton, WINDOW, rate=30.0)
    coverage.update(demos.windows[demos.clip == training_data.library.names.index("walk")])
    shares = coverage.per_clip()
    assert shares["walk"] == 1.0
    assert shares["run"] < 0.2


def test_coverage_without_windows_is_zero(targets, scale):
    coverage = Coverage(targets, scale)
    coverage.update(torch.empty(0, len(scale)))
    assert set(coverage.per_clip().values()) == {0.0}
