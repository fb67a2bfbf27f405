"""Edits in space, and authored motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pretrain.characters import rotations
from pretrain.motion.balance import GRAVITY, center_of_mass
from pretrain.motion.clip import ClipError
from pretrain.motion.editing import space
from pretrain.motion.editing.balancing import balance
from pretrain.motion.editing.footsteps import Gait, plan_footsteps
from pretrain.motion.editing.reaching import Target, reach
from pretrain.motion.editing.stepping import step
from pretrain.motion.editing.time import hold
from pretrain.motion.measures import measure
from pretrain.motion.poses import foot_poses
from pretrain.motion.soles import soles_of
from pretrain.motion.stance import replant


def test_arc_turns_at_its_rate_and_keeps_the_path_length(stroll):
    bent = space.arc(stroll, 0.8)
    assert measure(bent).turn == pytest.approx(measure(stroll).turn + 0.8, abs=0.05)
    assert measure(bent).speed == pytest.approx(measure(stroll).speed, rel=0.05)


def test_an_arc_leans_inwards(stroll):
    bent = space.arc(stroll, 1.0)
    gap = (
        center_of_mass(bent)
        - foot_poses(bent)[0]["left_foot"] / 2
        - foot_poses(bent)[0]["right_foot"] / 2
    )
    plain = (
        center_of_mass(stroll)
        - foot_poses(stroll)[0]["left_foot"] / 2
        - foot_poses(stroll)[0]["right_foot"] / 2
    )
    heading = np.arange(len(stroll)) / stroll.fps
    left = np.stack([-np.sin(heading), np.cos(heading)], -1)
    inwards = (gap[:, :2] * left).sum(-1)[30:].mean() - plain[30:, 1].mean()
    assert inwards == pytest.approx(0.85 / GRAVITY * 0.9, abs=0.03)


def test_stride_shortens_the_path_and_not_the_duration(stroll):
    short = replant(space.stride(stroll, 0.6))
    assert len(short) == len(stroll)
    assert measure(short).ahead == pytest.approx(0.6 * measure(stroll).ahead, rel=0.05)
    assert measure(short).skate_most < 0.03


def test_hinge_angles_are_clamped_and_large_excess_is_refused(still):
    lower = np.array(still.skeleton.lower)
    upper = np.array(still.skeleton.upper)
    limited = space.limited(still)
    assert (limited.joint_pos >= lower - 1e-6).all()
    assert (limited.joint_pos <= upper + 1e-6).all()
    overbent = np.tile([np.cos(0.5), 0, -np.sin(0.5), 0], (len(still), 1))  # 1 rad to the front
    bent = replace(still, joint_rot=still.joint_rot | {"right_shin": overbent})
    with pytest.raises(ClipError, match=r"right_knee is 1\.00 rad past its range"):
        space.limited(bent)


def test_a_swaying_stand_keeps_its_feet(still):
    swayed = space.sway(hold(still, 1.0, 5.0), 0.012)
    before = foot_poses(hold(still, 1.0, 5.0))[0]
    after = foot_poses(swayed)[0]
    for foot, ankle in before.items():
        assert np.abs(after[foot] - ankle).max() < 0.004
    assert 0.005 < np.ptp(center_of_mass(swayed)[:, 0]) < 0.05


def test_a_balanced_stand_has_its_weight_over_its_feet(still):
    stand = hold(still, 1.0, 2.0)
    balanced = balance(stand, 0.05)
    before = foot_poses(stand)[0]
    after = foot_poses(balanced)[0]
    for foot, ankle in before.items():
        assert np.abs(after[foot] - ankle).max() < 0.004
    facing = rotations.heading_direction(stand.root_rot)
    middle = (after["left_foot"] + after["right_foot"])[:, :2] / 2
    gap = center_of_mass(balanced)[:, :2] - middle
    np.testing.assert_allclose(gap, 0.05 * facing, atol=0.005)
    assert soles_of(balanced).lowest == pytest.approx(soles_of(stand).lowest, abs=0.002)


GAITS = [
    Gait(turn=2.0, step=0.3, seconds=3),
    Gait(aside=0.45, step=0.32, width=0.24, seconds=3),
    Gait(ahead=-0.4, step=0.42, width=0.16, seconds=3),
    Gait(ahead=0.8, step=0.5, width=0.16, seconds=3),
]


@pytest.mark.parametrize("gait", GAITS, ids=["turn", "aside", "back", "ahead"])
def test_authored_steps_keep_a_foot_on_the_ground_and_none_in_it(still, gait):
    clip = step(still, gait)
    lowest = soles_of(clip).lowest
    assert lowest.min() > -0.002
    assert lowest.min(-1).max() < 0.008
    assert measure(clip).skate_most < 0.03


@pytest.mark.parametrize("gait", GAITS, ids=["turn", "aside", "back", "ahead"])
def test_zero_moment_point_of_authored_steps_is_near_the_soles(still, gait):
    """The zero-moment point of the whole body stays within 9 cm of the soles that stand."""
    clip = step(still, gait)
    com = center_of_mass(clip)
    force = np.gradient(np.gradient(com, 1 / clip.fps, axis=0), 1 / clip.fps, axis=0)
    zmp = com[:, :2] - com[:, 2:] * force[:, :2] / (GRAVITY + force[:, 2:])
    feet = plan_footsteps(gait, clip.fps)
    ahead = np.stack([np.cos(feet.yaw), np.sin(feet.yaw)], -1)
    middle = feet.pos[..., :2] + 0.035 * ahead
    a = middle[:, 0]
    b = middle[:, 1]
    both = feet.support.all(-1)
    along = ((zmp - a) * (b - a)).sum(-1) / ((b - a) ** 2).sum(-1)
    share = np.where(both, np.clip(along, 0, 1), feet.support[:, 1])
    off = np.linalg.norm(zmp - (a + share[:, None] * (b - a)), axis=-1)
    assert np.quantile(off, 0.9) < 0.09


def test_authored_steps_begin_and_end_in_a_stand(still):
    clip = step(still, GAITS[3])
    moved = np.linalg.norm(np.diff(clip.world_poses[0], axis=0), axis=-1) * clip.fps
    assert max(moved[0].max(), moved[-3:].max()) < 0.1


def test_authored_steps_lift_feet_as_high_as_stated(still):
    ankle = still.skeleton.bodies.index("left_foot")
    heights = [
        np.ptp(step(still, Gait(turn=1.5, step=0.5, lift=lift)).world_poses[0][:, ankle, 2])
        for lift in (0.05, 0.12)
    ]
    assert heights == pytest.approx([0.05, 0.12], abs=0.005)


@pytest.mark.parametrize("height", [0.5, 0.85, 1.15, 1.5])
@pytest.mark.parametrize("hand", ["right", "left"])
def test_a_hand_reaches_its_height_while_feet_and_weight_stay(still, height, hand):
    stand = hold(still, 1.0, 4.0)
    clip = reach(stand, Target(hand, height, 0.35, 0.0, 1.0, 1.0))
    at = clip.world_poses[0][:, clip.skeleton.bodies.index(f"{hand}_hand")]
    assert at[60, 2] == pytest.approx(height, abs=0.03)
    assert np.abs(center_of_mass(clip)[:, :2] - center_of_mass(stand)[:, :2]).max() < 0.06
    assert np.abs(soles_of(clip).lowest).max() < 0.02
    np.testing.assert_allclose(clip.world_poses[0][-1], stand.world_poses[0][-1], atol=0.01)


def test_a_reach_that_would_be_cut_off_is_refused(still):
    stand = hold(still, 1.0, 3.0)
    with pytest.raises(
        ClipError, match=r"cmu_02_10: reach needs 3\.30 s \(.*\), but it lasts 3\.00"
    ):
        reach(stand, Target("right", 1.0, 0.35, 0.0, 1.0, 1.0))
