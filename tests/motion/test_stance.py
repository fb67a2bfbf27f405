"""Ground contact of feet, and inverse kinematics of limbs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrain.motion.fetch import fetched
from pretrain.motion.importers import read_clip
from pretrain.motion.measures import measure
from pretrain.motion.poses import STRAIGHT, bend_limb, foot_poses, with_feet, with_hand
from pretrain.motion.soles import contacts, runs, soles_of
from pretrain.motion.stance import plant, replant
from skills_store import places

LENGTHS = (0.42, 0.41)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=6), st.floats(0.1, STRAIGHT))
def test_a_limb_ends_at_its_target(numbers, reach):
    direction = np.array(numbers[:3])
    plane = np.array(numbers[3:])
    if np.linalg.norm(np.cross(direction, plane)) < 0.05:
        return
    direction /= np.linalg.norm(direction)
    target = direction[None] * reach * sum(LENGTHS)
    bone, axis, flexion = bend_limb(
        np.zeros((1, 3)), target, plane[None] / np.linalg.norm(plane), LENGTHS
    )
    second = bone * np.cos(flexion)[:, None] + np.cross(axis, bone) * np.sin(flexion)[:, None]
    np.testing.assert_allclose(LENGTHS[0] * bone + LENGTHS[1] * second, target, atol=1e-9)
    assert 0 <= flexion[0] <= np.pi
    assert (axis * plane).sum() >= 0


def test_a_limb_that_is_too_short_points_at_its_target():
    bone, _, flexion = bend_limb(
        np.zeros((1, 3)), np.array([[0, 0, -2.0]]), np.array([[0, 1.0, 0]]), LENGTHS
    )
    assert np.degrees(flexion[0]) < 20
    assert bone[0, 2] < -0.98


def test_placing_feet_at_their_poses_leaves_the_clip_unchanged(stroll):
    ankles, soles = foot_poses(stroll)
    again = with_feet(stroll, ankles, soles)
    gap = np.linalg.norm(again.world_poses[0] - stroll.world_poses[0], axis=-1)
    assert gap.max() < 0.02
    assert np.median(gap.max(-1)) < 1e-6


def test_a_hand_goes_to_its_target(still):
    positions, _ = still.world_poses
    shoulder = positions[:, still.skeleton.bodies.index("left_upper_arm")]
    target = shoulder + np.array([0.3, 0.1, -0.1])
    moved = with_hand(still, "left_hand", target)
    np.testing.assert_allclose(
        moved.world_poses[0][:, still.skeleton.bodies.index("left_hand")], target, atol=1e-9
    )


@pytest.mark.parametrize("name", ["walker/0walk_forward", "walker/turn_left1", "humanoid3d_run"])
def test_planted_feet_stand_still_on_the_ground_at_the_same_pace(skeleton, name):
    path = fetched(places.clips()) / f"{name}.txt"
    clip = read_clip(path.read_bytes(), path.name, skeleton)
    before = measure(clip)
    after = measure(plant(clip))
    assert after.skate_most < 0.02
    assert after.penetration < 0.005
    assert after.floating < 0.005
    assert after.speed == pytest.approx(before.speed, rel=0.12)


def test_planting_a_planted_clip_changes_little(stroll):
    again = replant(stroll)
    gap = np.linalg.norm(again.world_poses[0] - stroll.world_poses[0], axis=-1)
    assert np.quantile(gap, 0.9) < 0.02
    assert gap.max() < 0.05


def test_a_clip_in_the_air_is_put_on_the_ground(stroll):
    raised = replace(stroll, root_pos=stroll.root_pos + np.array([0, 0, 0.4]))
    assert plant(raised).root_pos[:, 2].mean() == pytest.approx(
        stroll.root_pos[:, 2].mean(), abs=0.01
    )


def test_a_walk_stands_on_one_foot_or_two(stroll):
    standing = contacts(soles_of(stroll))
    assert standing.any(-1).mean() > 0.97
    assert 0.05 < standing.all(-1).mean() < 0.6


def test_runs_are_the_ranges_of_true_values():
    assert runs(np.array([True, True, False, True, False, False, True])) == [(0, 1), (3, 3), (6, 6)]
    assert runs(np.zeros(3, dtype=bool)) == []
