"""Wrong frame rates are detected from the gait."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.clip_files.human_rigs import bvh_of
from pretrain.motion.editing import time
from pretrain.motion.gait import read_gait, suggested_speed
from pretrain.motion.importers import read_clip
from pretrain.motion.importers.copies import count_copies
from pretrain.motion.verdict import USABLE, judge

WALKS = ("walk_slow", "walk", "walk_on", "walk_brisk", "arc_wide", "back")


def test_steps_are_counted_and_measured(stroll):
    gait = read_gait(stroll)
    assert gait
    assert gait.cadence == pytest.approx(1.43, abs=0.05)
    assert gait.step == pytest.approx(gait.speed / gait.cadence)
    assert gait.flight == 0


@pytest.mark.parametrize("rate", [7.5, 15, 60])
def test_wrong_frame_rate_is_detected_from_step_frequency(stroll, skeleton, rate):
    clip = read_clip(bvh_of(replace(stroll, fps=rate)), "walk.bvh", skeleton)
    verdict = judge(clip)
    assert verdict.verdict == USABLE
    (line,) = (line for line in verdict.advice if "steps/s" in line)
    assert ("as in slow motion" if rate < 30 else "as in quick motion") in line
    assert verdict.measures
    assert verdict.measures.suggested_speed == pytest.approx(30 / rate, rel=0.25)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_suggested_speed_inverts_the_playback_factor_of_walks(everyday, factor):
    walks = [clip for clip in everyday.originals if clip.name in WALKS]
    assert len(walks) == len(WALKS)
    for walk in walks:
        found = suggested_speed(read_gait(time.speed(walk, factor)))
        assert found == pytest.approx(1 / factor, rel=0.35), walk.name


def test_bundled_clips_have_suggested_speed_1_and_no_copies(everyday, every_clip):
    for clip in (*everyday.clips, *every_clip.dataset.clips):
        assert suggested_speed(read_gait(clip)) == 1, clip.name
        assert count_copies(clip)[0] == 1, clip.name


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("cut", [0, 1])
def test_poses_that_are_stored_several_times_are_kept_once(stroll, skeleton, copies, cut):
    frames = time.frames(stroll, np.repeat(np.arange(60), copies)[cut:])
    clip = read_clip(bvh_of(frames), "walk.bvh", skeleton)
    (line,) = (line for line in clip.warnings if "is stored" in line)
    assert line.startswith("walk.bvh: every pose is stored")
    assert line.endswith(f"frame kept, 30 -> {30 / copies:g} frames/s")
    assert clip.duration == pytest.approx(59 * copies / 30, abs=copies / 30)
    way = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=-1)
    assert way.min() > 0.3 * way.mean()  # no frame stands still


def test_walk_with_duplicated_frames_is_reported_as_slow_motion(stroll, skeleton):
    twice = time.frames(stroll, np.repeat(np.arange(len(stroll)), 2))
    clip = read_clip(bvh_of(twice), "walk.bvh", skeleton)
    assert any("slow motion: at `speed` 2." in advice for advice in judge(clip).advice)


def test_long_pauses_are_not_duplicated_poses(stroll):
    pause = np.concatenate([np.arange(30), np.full(60, 30), np.arange(30, 60)])
    for clip in (time.frames(stroll, pause), time.hold(stroll, 1.0, 2.0)):
        assert count_copies(clip)[0] == 1
