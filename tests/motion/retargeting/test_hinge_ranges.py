"""Poses within the hinges' ranges are kept, others moved to the nearest ones within."""

from __future__ import annotations

import numpy as np
import pytest

from pretrain.characters.kinematics import ball_rotations
from pretrain.characters.rotations import angle_between, multiply
from pretrain.motion.clip import MotionClip
from pretrain.motion.feasibility import past_range
from pretrain.motion.retargeting.hinge_ranges import MAX_HELD, hold_in_ranges, nearest_within

FRAMES = 40


def random_rotations(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=(FRAMES, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def clip_of(skeleton, joint_rot: dict[str, np.ndarray]) -> MotionClip:
    upright = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1))
    fixed = {joint.body: upright for joint in skeleton.joints}
    return MotionClip(
        name="poses",
        skeleton=skeleton,
        fps=30.0,
        root_pos=np.tile([0.0, 0.0, 0.9], (FRAMES, 1)),
        root_rot=upright,
        joint_rot=fixed | joint_rot,
    )


def angles_within(skeleton, rng: np.random.Generator, frames: int) -> np.ndarray:
    lower = np.array(skeleton.lower)
    upper = np.array(skeleton.upper)
    return lower + rng.uniform(0.02, 0.98, (frames, len(lower))) * (upper - lower)


def test_pose_within_the_ranges_is_unchanged(skeleton):
    turns = ball_rotations(skeleton, angles_within(skeleton, np.random.default_rng(0), FRAMES))
    balls = {ball.body: turns[:, i] for i, ball in enumerate(skeleton.balls)}
    clip = clip_of(skeleton, balls)
    held = hold_in_ranges(clip)
    for body, kept in clip.joint_rot.items():
        np.testing.assert_array_equal(held.joint_rot[body], kept)


def test_poses_near_the_ranges_are_held_and_far_ones_unchanged(skeleton):
    rng = np.random.default_rng(1)
    clip = clip_of(skeleton, {ball.body: random_rotations(rng) for ball in skeleton.balls})
    held = hold_in_ranges(clip)
    past = past_range(skeleton, held.joint_pos)
    for ball in skeleton.balls:
        before = clip.joint_rot[ball.body]
        far = angle_between(nearest_within(skeleton, ball, before), before) > MAX_HELD
        assert 0 < far.sum() < FRAMES
        kept = np.abs((held.joint_rot[ball.body] * before).sum(-1)) > 1 - 1e-12
        assert kept[far].all()
        assert past[~far, ball.start : ball.stop].max() <= 1e-6


def test_a_frame_past_the_ranges_changes_no_other(skeleton):
    head = np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1))
    head[7] = [np.cos(0.7), 0.0, 0.0, np.sin(0.7)]  # 1.4 rad, of 0.79
    held = hold_in_ranges(clip_of(skeleton, {"head": head})).joint_rot["head"]
    others = np.arange(FRAMES) != 7
    np.testing.assert_array_equal(held[others], head[others])
    assert angle_between(held[7], head[7]) == pytest.approx(1.4 - 0.79 + 0.01, abs=0.01)


def test_a_knee_that_bends_the_wrong_way_is_straightened(skeleton):
    half = np.radians(20) / 2
    shin = np.tile([np.cos(half), 0.0, -np.sin(half), 0.0], (FRAMES, 1))
    held = hold_in_ranges(clip_of(skeleton, {"right_shin": shin}))
    knee = skeleton.hinges.index("right_knee")
    np.testing.assert_allclose(held.joint_pos[:, knee], 0.01, atol=1e-9)


@pytest.mark.parametrize("body", ["right_upper_arm", "left_thigh", "head", "left_foot"])
def test_no_rotation_within_the_ranges_is_nearer(skeleton, body):
    """Compared with 20,000 random ones."""
    joint = next(joint for joint in skeleton.joints if joint.body == body)
    rng = np.random.default_rng(2)
    targets = random_rotations(rng)
    near = angle_between(nearest_within(skeleton, joint, targets), targets)
    index = skeleton.balls.index(joint)
    others = ball_rotations(skeleton, angles_within(skeleton, rng, 20_000))[:, index]
    least = angle_between(others[:, None], targets[None]).min(0)
    assert (near <= least + 1e-6).all()
    assert near.max() > 0.3


def test_a_rotation_and_its_negative_are_held_alike(skeleton):
    joint = next(joint for joint in skeleton.joints if joint.body == "torso")
    targets = multiply(random_rotations(np.random.default_rng(3)), np.array([0.6, 0.8, 0.0, 0.0]))
    held = nearest_within(skeleton, joint, targets)
    np.testing.assert_allclose(
        angle_between(held, nearest_within(skeleton, joint, -targets)), 0, atol=1e-6
    )
