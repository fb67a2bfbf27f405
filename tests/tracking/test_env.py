"""TrackingEnv: observations, rewards, and ends of episodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.characters.rotations import (
    conjugate,
    heading_rotation,
    multiply,
    rotate,
    tan_norm,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import unflatten
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import pd_target
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.env import TrackingEnv, observe_targets
from pretrain.tracking.pose import point_distances
from pretrain.tracking.references import make_references
from pretrain.tracking.training import make_env, observe_own_targets
from pretrain.training_data import TrainingData
from tests.tracking.poses import clip_states, turned

WORLDS = 8
ALL = torch.arange(WORLDS)


@pytest.fixture
def env(training_data: TrainingData, rng: torch.Generator) -> TrackingEnv:
    return make_env(TrackingConfig(threads=1), training_data, WORLDS, rng)


def follow(env: TrackingEnv) -> torch.Tensor:
    """Actions that target the reference's next pose."""
    ahead = env.times() + 1 / CONTROL_RATE
    return env.action_scale.action(pd_target(env.references.at(env.env.clip, ahead)))


def test_targets_are_the_same_in_every_frame_of_the_world(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    clips, times = library.sample(20, torch.Generator().manual_seed(0))
    state = clip_states(library, 20, seed=1)
    here = observe_targets(make_references(library, skeleton, 10), state, clips, times, (1, 4))
    offset = torch.tensor([3.0, 1.0, 0.0])
    elsewhere = turned(unflatten(library.frames), 1.0, offset).flatten()
    moved = make_references(replace(library, frames=elsewhere), skeleton, 10)
    there = observe_targets(moved, turned(state, 1.0, offset), clips, times, (1, 4))
    torch.testing.assert_close(here, there, atol=1e-4, rtol=1e-4)


def test_target_holds_the_joint_angles_that_many_steps_ahead(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    targets = observe_own_targets(make_references(library, skeleton, 10), (2,))
    hinges = skeleton.num_hinges
    assert targets.shape == (len(library.frames), 9 + hinges)
    clip = library.clip_frames[0]
    torch.testing.assert_close(
        targets[: len(clip) - 3, 9:], clip[2:-1, 13 : 13 + hinges], atol=1e-5, rtol=0
    )


def test_target_is_where_the_reference_is_from_the_character(
    library: MotionLibrary, skeleton: Skeleton
) -> None:
    references = make_references(library, skeleton, 10)
    clips, times = library.sample(20, torch.Generator().manual_seed(0))
    reference = references.at(clips, times + 1 / CONTROL_RATE)
    facing = heading_rotation(reference.root_rot)
    behind = rotate(facing, torch.tensor([-0.7, -0.2, 0.1]).expand(20, 3))
    state = replace(reference, root_pos=reference.root_pos + behind, root_rot=facing)
    target = observe_targets(references, state, clips, times, (1,))
    expected = torch.tensor([0.7, 0.2, -0.1]).expand(20, 3)
    torch.testing.assert_close(target[:, :3], expected, atol=1e-4, rtol=0)
    level = tan_norm(multiply(conjugate(facing), reference.root_rot))
    torch.testing.assert_close(target[:, 3:9], level, atol=1e-4, rtol=0)


def test_an_episode_begins_on_its_reference(env: TrackingEnv) -> None:
    pose = env.pose()
    reference = env.reference()
    assert point_distances(pose, reference).max() < 1e-3
    assert env.reward(pose, reference).min() > 0.99


def test_following_the_reference_is_rewarded_more_than_another_pose(env: TrackingEnv) -> None:
    before = env.snapshot()
    followed = env.step(follow(env)).reward
    env.restore(before)
    held = env.step(follow(env) + 1.0).reward
    assert (followed > held).all()
    assert followed.min() > 0.7


@pytest.mark.parametrize(("distance", "ends"), [(0.8, False), (1.2, True)])
def test_a_body_far_from_its_reference_terminates_the_episode(
    env: TrackingEnv, distance: float, ends: bool
) -> None:
    env.env.begin(ALL, torch.zeros(WORLDS, dtype=torch.long), torch.full((WORLDS,), 0.2))
    state = env.env.state()
    shifted = state.root_pos + distance * torch.tensor([0.0, 1.0, 0.0])
    env.env.backend.place(ALL, replace(state, root_pos=shifted))
    step = env.step(follow(env))
    assert step.terminated.tolist() == [ends] * WORLDS
    assert (step.reward[step.terminated] == 0).all()
    assert (step.extras["distance"] - distance).abs().max() < 0.1


def test_a_single_body_far_from_its_reference_terminates_the_episode(env: TrackingEnv) -> None:
    env.env.begin(ALL, torch.zeros(WORLDS, dtype=torch.long), torch.full((WORLDS,), 0.2))
    state = env.env.state()
    joint_pos = state.joint_pos.clone()
    joint_pos[:, 9] += 1.5  # the right elbow
    env.env.backend.place(ALL, replace(state, joint_pos=joint_pos))
    env.conditions = replace(env.conditions, max_distance=0.1)
    step = env.step(follow(env))
    assert step.terminated.all()
    assert step.extras["distance"].max() < 0.1  # the mean over root and key bodies


def test_a_broken_world_terminates_without_a_reward(
    env: TrackingEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = env.env.backend.advance
    broken = torch.arange(WORLDS) == 3

    def advance_and_break(targets: torch.Tensor) -> torch.Tensor:
        return advance(targets) | broken

    monkeypatch.setattr(env.env.backend, "advance", advance_and_break)
    step = env.step(follow(env))
    assert torch.equal(step.terminated, broken)
    assert step.reward[3] == 0
    assert (step.reward[~broken] > 0).all()


def test_lying_for_long_is_no_failure_in_a_clip_that_rises(
    every_clip: TrainingData, rng: torch.Generator
) -> None:
    env = make_env(TrackingConfig(threads=1), every_clip, 1, rng)
    clip = torch.tensor([every_clip.library.names.index("getup_faceup")])
    env.env.begin(torch.zeros(1, dtype=torch.long), clip, torch.zeros(1))
    env.conditions = replace(env.conditions, max_distance=10.0)
    lying = env.action_scale.action(env.env.state().joint_pos)
    steps = round(float(every_clip.library.durations[clip]) * CONTROL_RATE) - 1
    for _ in range(steps):
        step = env.step(lying)
        assert not (step.terminated | step.truncated).any()
    assert env.step(lying).truncated.all()


def test_episode_is_truncated_at_the_end_of_a_clip_that_is_not_cyclic(
    every_clip: TrainingData, rng: torch.Generator
) -> None:
    env = make_env(TrackingConfig(threads=1), every_clip, 2, rng)
    clips = torch.tensor([every_clip.library.names.index(name) for name in ("kick", "walk")])
    ends = env.env.library.durations[clips]
    env.env.begin(torch.arange(2), clips, ends - 1.5 / CONTROL_RATE)
    assert not env.step(follow(env)).truncated.any()
    second = env.step(follow(env))
    assert second.truncated.tolist() == [True, False]
    assert not second.terminated.any()


def test_episode_is_truncated_by_time(training_data: TrainingData, rng: torch.Generator) -> None:
    cfg = TrackingConfig(threads=1, episode_length=2 / CONTROL_RATE)
    env = make_env(cfg, training_data, WORLDS, rng)
    assert not env.step(follow(env)).truncated.any()
    assert env.step(follow(env)).truncated.all()


def test_snapshot_restores_the_episodes_bit_for_bit(env: TrackingEnv) -> None:
    env.step(follow(env))
    before = env.snapshot()
    action = follow(env)
    first = env.step(action)
    env.restore(before)
    second = env.step(action)
    assert torch.equal(first.reward, second.reward)
    assert torch.equal(first.next_obs["target"], second.next_obs["target"])
