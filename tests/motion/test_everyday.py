"""The recipe everyday: plausible clips, without a gap between their speeds, free to ship, and
without a download.
"""

from __future__ import annotations

import numpy as np
import pytest

from pretrain.motion import fetch
from pretrain.motion.dataset import EVERYDAY, load_dataset
from pretrain.motion.licences import is_non_commercial
from pretrain.motion.measures import measure
from pretrain.motion.soles import soles_of
from pretrain.motion.verdict import GOOD, judge
from skills_store.manifest import Clip

WIDEST_GAP = 0.5  # m/s between the speeds of two clips
SLOWEST = -0.4
FASTEST = 3.0  # m/s
LARGEST = 3_000_000  # bytes


@pytest.fixture(scope="module")
def measured(everyday):
    return {clip.name: measure(clip) for clip in everyday.originals}


def test_every_clip_is_good(everyday):
    assert {
        clip.name: judge(clip).advice for clip in everyday.originals if judge(clip).verdict != GOOD
    } == {}


def test_clips_respect_joint_limits_and_foot_contact(measured):
    for name, m in measured.items():
        assert m.past_limits == 0, name
        assert max(m.penetration, m.floating) < 0.02, name
        assert m.skate_most < 0.03, name


def test_flight_phases_accelerate_at_gravity(measured):
    falls = {name: m.fall for name, m in measured.items() if np.isfinite(m.fall)}
    assert {"jog", "run_slow", "run", "jump"} <= falls.keys()
    assert all(-9.81 * 1.25 < fall < -9.81 / 1.25 for fall in falls.values()), falls


def test_speeds_leave_no_gap(measured):
    steady = [m.ahead for m in measured.values() if abs(m.turn) < 0.2 and abs(m.aside) < 0.3]
    speeds = sorted(speed for speed in steady if SLOWEST - 0.05 <= speed <= FASTEST + 0.1)
    assert speeds[0] <= SLOWEST
    assert speeds[-1] >= FASTEST
    assert max(np.diff(speeds)) <= WIDEST_GAP


def test_clips_stand_turn_sidestep_and_reach(measured):
    assert abs(measured["stand"].ahead) < 0.01
    assert measured["turn"].turn == pytest.approx(2.0, abs=0.1)
    assert measured["turn"].speed < 0.2
    assert measured["side"].aside > 0.4
    assert measured["reach_high"].hand_high > 1.6
    assert measured["pick_up"].hand_low < 0.2


@pytest.mark.parametrize("name", ["stand", "reach_knee", "reach_hip", "reach_chest", "reach_high"])
def test_standing_clips_have_their_weight_over_the_middle_of_their_feet(measured, name):
    assert measured[name].balance > 0.08


@pytest.mark.parametrize(
    "name", ["stop", "pick_up", "jump", "turn_quarter", "side_stop", "reach_knee", "reach_high"]
)
def test_one_shot_clips_end_standing_still(everyday, name):
    clip = next(clip for clip in everyday.originals if clip.name == name)
    last = clip.body_positions()[-10:]
    assert np.abs(np.diff(last, axis=0)).max() * clip.fps < 0.25


def test_jump_reaches_40_cm_and_lands_at_its_start(everyday):
    jump = next(clip for clip in everyday.originals if clip.name == "jump")
    height = soles_of(jump).lowest.min(-1)
    assert height.max() == pytest.approx(0.4, abs=0.03)
    assert height[[0, -1]] == pytest.approx(0, abs=0.005)
    assert np.linalg.norm(jump.root_pos[-1, :2] - jump.root_pos[0, :2]) < 0.1


def test_everyday_licences_permit_shipping_trained_weights(everyday):
    assert {clip.licence for clip in everyday.clips} == {"LicenseRef-CMU-MoCap"}
    assert not any(is_non_commercial(clip.licence) for clip in everyday.clips)
    assert "may not resell this data" in (EVERYDAY / "LICENSE.txt").read_text(encoding="utf-8")


def test_bundled_clips_are_small():
    assert sum(file.stat().st_size for file in EVERYDAY.iterdir()) < LARGEST


def test_recipe_needs_no_download(monkeypatch, skeleton):
    def refuse(cache):
        raise AssertionError(cache)

    monkeypatch.setattr(fetch, "fetched", refuse)
    assert load_dataset("everyday", skeleton).clips


def test_edits_are_in_a_clips_source_and_digest(everyday):
    clips = {clip.name: clip for clip in everyday.originals}
    assert "step (turn 2.0, width 0.22, lift 0.11)" in clips["turn"].source
    assert clips["walk_slow"].source == "CMU mocap 49_01 (cgspeed BVH), retargeted"
    assert len({clip.digest for clip in everyday.originals}) == len(clips)
    for clip in everyday.clips:
        Clip(
            name=clip.name, digest=clip.digest, source=clip.source, licence=clip.licence, weight=1.0
        )


def test_loading_the_dataset_is_deterministic(everyday, skeleton):
    again = load_dataset("everyday", skeleton)
    assert again.digest == everyday.digest
    for a, b in zip(everyday.clips, again.clips, strict=True):
        np.testing.assert_array_equal(a.states.flatten(), b.states.flatten())


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC-BY-NC-4.0", True),
        ("CC BY-NC-ND 4.0", True),
        ("LicenseRef-NVIDIA-NC", True),
        ("research and evaluation only", True),
        ("Zlib AND MIT", False),
        ("CC-BY-4.0", False),
        ("LicenseRef-CMU-MoCap", False),
    ],
)
def test_non_commercial_licences_are_recognized(licence, expected):
    assert is_non_commercial(licence) is expected
