"""Differences of a character from its reference."""

from __future__ import annotations

from dataclasses import replace

import torch

from pretrain.characters.kinematics import forward
from pretrain.characters.rotations import from_heading_frame, heading_direction
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.library import MotionLibrary
from pretrain.tracking.pose import joint_angles_between, point_distances, pose_difference
from tests.tracking.poses import clip_states, pose_of, turned

FAR = torch.tensor([5.0, -2.0, 0.0])


def test_points_are_the_root_and_the_key_bodies(library: MotionLibrary, skeleton: Skeleton) -> None:
    states = clip_states(library, 20)
    positions, _ = forward(skeleton, states.root_pos, states.root_rot, states.joint_pos)
    bodies = [0, *(skeleton.bodies.index(body) for body in skeleton.key_bodies)]
    torch.testing.assert_close(
        pose_of(skeleton, states).points, positions[:, bodies], atol=1e-5, rtol=1e-5
    )


def test_a_reference_moved_along_the_heading_differs_in_the_offset_alone(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    states = clip_states(library, 20)
    ahead = from_heading_frame(
        heading_direction(states.root_rot), torch.tensor([0.7, 0.2, 0.0]).expand(20, 3)
    )
    reference = pose_of(skeleton, replace(states, root_pos=states.root_pos + ahead))
    pose = pose_of(skeleton, states)
    expected = torch.zeros(20, pose.frame.shape[1] + 4 + skeleton.num_hinges)
    expected[:, pose.frame.shape[1]] = 0.7
    expected[:, pose.frame.shape[1] + 1] = 0.2
    torch.testing.assert_close(pose_difference(pose, reference), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        point_distances(pose, reference), torch.full((20, 6), 0.53**0.5), atol=1e-5, rtol=0
    )


def test_difference_is_the_same_in_every_frame_of_the_world(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    states = clip_states(library, 20)
    others = clip_states(library, 20, seed=1)
    here = pose_difference(pose_of(skeleton, states), pose_of(skeleton, others))
    there = pose_difference(
        pose_of(skeleton, turned(states, 2.0, FAR)), pose_of(skeleton, turned(others, 2.0, FAR))
    )
    torch.testing.assert_close(here, there, atol=2e-4, rtol=1e-4)


def test_angle_of_a_joint_is_that_by_which_it_was_turned(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    pos = clip_states(library, 20).joint_pos
    for number, joint in enumerate(skeleton.joints):
        moved = pos.clone()
        moved[:, joint.stop - 1] += 0.3  # the innermost hinge turns the body about its own axis
        expected = torch.zeros(20, len(skeleton.joints))
        expected[:, number] = 0.3
        angles = joint_angles_between(skeleton, pos, moved)
        torch.testing.assert_close(angles, expected, atol=2e-3, rtol=0)
