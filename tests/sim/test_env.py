"""CharacterEnv: starts and ends of episodes, and determinism per seed."""

from __future__ import annotations

import pytest
import torch

from pretrain.characters.kinematics import lowest_points
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.features import style_frame


@pytest.fixture
def env(humanoid, library) -> CharacterEnv:
    return make(humanoid, library)


def make(humanoid, library, worlds: int = 32, length: int = 300, **more) -> CharacterEnv:
    made = CharacterEnv(
        make_backend("mujoco", humanoid, worlds, 1),
        humanoid.skeleton,
        library,
        EpisodeConfig(window=3, length=length, **more),
        rng=torch.Generator().manual_seed(0),
    )
    made.reset(torch.arange(worlds))
    return made


def pose(env: CharacterEnv) -> torch.Tensor:
    return env.state().joint_pos.clone()


def test_an_episode_starts_with_the_frames_that_led_to_it(env, skeleton):
    torch.testing.assert_close(env.states[:, -1], env.state().flatten(), atol=1e-5, rtol=0)
    torch.testing.assert_close(
        env.frames[:, -1], style_frame(skeleton, env.state()), atol=1e-4, rtol=0
    )


def test_the_window_moves_on_with_each_step(env):
    before = env.states.clone()
    env.step(pose(env))
    assert torch.equal(env.states[:, :-1], before[:, 1:])
    assert torch.equal(env.states[:, -1], env.state().flatten())


def test_limp_body_falls_and_standing_episodes_time_out(humanoid, library):
    env = make(humanoid, library, length=20)
    fell = torch.zeros(32, dtype=torch.bool)
    for _ in range(20):
        outcome = env.step(pose(env))
        fell |= outcome.fell
        assert not (outcome.fell & outcome.timed_out).any()
    assert (outcome.timed_out | fell).all()
    assert outcome.timed_out.any()
    limp = make(humanoid, library)
    fell = torch.zeros(32, dtype=torch.bool)
    for _ in range(60):
        fell |= limp.step(torch.zeros(32, 28)).fell
    assert fell.all()


def test_step_does_not_reset_envs_with_finite_state(env):
    for _ in range(60):
        env.step(torch.zeros(32, 28))
    assert (env.age == 60).all()


def test_env_with_nan_state_is_counted_and_reset(env):
    bad = env.state()[5:6].map(lambda x: x * float("nan"))
    env.backend.place(torch.tensor([5]), bad)
    outcome = env.step(torch.zeros(32, 28))
    assert outcome.broken.nonzero()[:, 0].tolist() == [5]
    assert env.num_broken == 1
    assert torch.isfinite(env.state().flatten()).all()
    assert torch.isfinite(env.windows()).all()


def test_runs_are_deterministic_and_snapshots_resume(humanoid, library):
    def run(env: CharacterEnv, steps: int) -> torch.Tensor:
        for _ in range(steps):
            done = env.step(pose(env)).fell
            env.reset(done.nonzero()[:, 0])
        return env.states

    first = make(humanoid, library)
    second = make(humanoid, library)
    assert torch.equal(run(first, 40), run(second, 40))
    snapshot = first.snapshot()
    ahead = run(first, 30).clone()
    second.restore(snapshot)
    assert torch.equal(run(second, 30), ahead)


def test_start_clips_follow_the_current_weights(humanoid, library):
    weights = torch.zeros(len(library.names))
    weights[2] = 1.0
    env = make(humanoid, library, clip_weights=lambda: weights)
    assert (env.clip == 2).all()
    weights.zero_()[1] = 1.0
    env.reset(torch.arange(16))
    assert env.clip.tolist() == [1] * 16 + [2] * 16


def test_env_records_clip_and_time_of_each_start(env, library):
    there = library.at(env.clip, env.clip_time)
    torch.testing.assert_close(there.joint_pos, env.state().joint_pos, atol=1e-4, rtol=0)
    assert not env.began_lying.any()
    env.begin(torch.tensor([3]), torch.tensor([1]), torch.tensor([0.5]))
    assert (int(env.clip[3]), float(env.clip_time[3])) == (1, 0.5)


def test_env_records_the_new_start_of_a_broken_world(env, library):
    bad = env.state()[5:6].map(lambda x: x * float("nan"))
    env.backend.place(torch.tensor([5]), bad)
    env.step(torch.zeros(32, 28))
    there = library.at(env.clip[5:6], env.clip_time[5:6])
    torch.testing.assert_close(env.states[5:6, -2], there.flatten(), atol=1e-4, rtol=0)


def test_a_share_of_episodes_begins_in_the_default_pose(humanoid, training_data):
    backend = make_backend("mujoco", humanoid, 64, 1)
    episodes = EpisodeConfig(window=3, length=300, default_reset_prob=0.5)
    rng = torch.Generator().manual_seed(0)
    env = CharacterEnv(backend, humanoid.skeleton, training_data.library, episodes, rng=rng)
    env.reset(torch.arange(64))
    state = env.state()
    in_default_pose = (state.joint_pos.abs().amax(-1) == 0) & (state.root_vel.abs().amax(-1) == 0)
    assert 16 < in_default_pose.sum() < 48
    assert torch.equal(env.began_default, in_default_pose)
    lowest = lowest_points(humanoid.skeleton, state[in_default_pose]).amin(-1)
    torch.testing.assert_close(lowest, torch.zeros_like(lowest), atol=1e-5, rtol=0)
