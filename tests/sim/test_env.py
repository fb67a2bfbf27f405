"""CharacterEnv: where episodes start, how they end, and that a seed is a run."""

from __future__ import annotations

import pytest
import torch

from pretrain.assist.curriculum import AssistSchedule, Curriculum
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.features import style_frame


@pytest.fixture
def env(humanoid, library) -> CharacterEnv:
    return make(humanoid, library)


def make(humanoid, library, worlds: int = 32, episode_length: int = 300, assist: float = 0.0) -> CharacterEnv:
    hand = AssistSchedule(start=assist, steps=1.0, rate=1.0)
    made = CharacterEnv(
        make_backend("mujoco", humanoid, worlds, 1),
        humanoid.skeleton,
        library,
        window=3,
        episode_length=episode_length,
        rng=torch.Generator().manual_seed(0),
        curriculum=Curriculum(library.weights, episode_length=episode_length, hand=hand),
    )
    made.reset(torch.arange(worlds))
    return made


def pose(env: CharacterEnv) -> torch.Tensor:
    return env.state().joint_pos.clone()


def test_an_episode_starts_with_the_frames_that_led_to_it(env, skeleton):
    torch.testing.assert_close(env.states[:, -1], env.state().flat(), atol=1e-5, rtol=0)
    torch.testing.assert_close(env.frames[:, -1], style_frame(skeleton, env.state()), atol=1e-4, rtol=0)


def test_the_window_moves_on_with_each_step(env):
    before = env.states.clone()
    env.step(pose(env))
    assert torch.equal(env.states[:, :-1], before[:, 1:])
    assert torch.equal(env.states[:, -1], env.state().flat())


def test_a_limp_body_falls_and_time_runs_out_otherwise(humanoid, library):
    env = make(humanoid, library, episode_length=20)
    fell = torch.zeros(32, dtype=torch.bool)
    for _ in range(20):
        outcome = env.step(pose(env))
        fell |= outcome.fell
        assert not (outcome.fell & outcome.timed_out).any()
    assert (outcome.timed_out | fell).all()
    assert outcome.timed_out.any()
    limp, fell = make(humanoid, library), torch.zeros(32, dtype=torch.bool)
    for _ in range(60):
        fell |= limp.step(torch.zeros(32, 28)).fell
    assert fell.all()


def test_a_held_body_stays_up_where_a_free_one_falls(humanoid, library):
    free, held = make(humanoid, library), make(humanoid, library, assist=1.0)
    targets = pose(free)
    fell = {name: torch.zeros(32, dtype=torch.bool) for name in ("free", "held")}
    for _ in range(60):
        fell["free"] |= free.step(targets).fell
        fell["held"] |= held.step(targets).fell
    # frozen in the pose of a stride at speed, even a held body may come to its knees
    assert fell["free"].float().mean() > 0.9
    assert fell["held"].float().mean() < 0.3


def test_a_hand_leads_at_the_pace_of_the_clip_that_is_asked_for(humanoid, library):
    env = make(humanoid, library, assist=1.0)
    walk, run = library.names.index("walk"), library.names.index("run")
    env.begin(torch.arange(32), torch.full((32,), walk), torch.zeros(32))
    like = torch.tensor([walk, run]).repeat(16)
    targets = pose(env)
    for _ in range(30):
        env.step(targets, like)
    speed = env.state().root_vel[:, :2].norm(dim=-1)
    assert speed[1::2].mean() > speed[::2].mean() + 0.5


def test_letting_go_leaves_no_torque_behind(humanoid, library):
    free, once_held = make(humanoid, library), make(humanoid, library, assist=0.5)
    everyone = torch.arange(32)
    once_held.step(pose(once_held))
    once_held.curriculum.turn()  # at rate 1 it lets go at once
    assert not once_held.curriculum.assist.any()
    for env in (free, once_held):
        env.backend.place(everyone, free.library.at(torch.zeros(32, dtype=torch.long), torch.linspace(0, 1, 32)))
    targets = pose(free)
    free.step(targets)
    once_held.step(targets)
    assert torch.equal(free.state().flat(), once_held.state().flat())


def test_step_never_resets(env):
    for _ in range(60):
        env.step(torch.zeros(32, 28))
    assert (env.age == 60).all()


def test_a_broken_world_is_counted_reset_and_alone(env):
    bad = env.state()[5:6].map(lambda x: x * float("nan"))
    env.backend.place(torch.tensor([5]), bad)
    outcome = env.step(torch.zeros(32, 28))
    assert outcome.broken.nonzero()[:, 0].tolist() == [5]
    assert env.broken == 1
    assert torch.isfinite(env.state().flat()).all()
    assert torch.isfinite(env.windows()).all()


def test_a_seed_is_a_run_and_a_snapshot_goes_on(humanoid, library):
    def run(env: CharacterEnv, steps: int) -> torch.Tensor:
        for _ in range(steps):
            done = env.step(pose(env)).fell
            env.reset(done.nonzero()[:, 0])
        return env.states

    first, second = make(humanoid, library), make(humanoid, library)
    assert torch.equal(run(first, 40), run(second, 40))
    snapshot = first.snapshot()
    ahead = run(first, 30).clone()
    second.restore(snapshot)
    assert torch.equal(run(second, 30), ahead)


def test_what_falls_early_is_begun_more_often(humanoid, library):
    env = make(humanoid, library)
    env.curriculum.focus = 3.0
    hard = torch.zeros(len(library.names), dtype=torch.bool)
    hard[1] = True
    env.curriculum.steps[:], env.curriculum.falls[:] = 3000.0, torch.where(hard, 100.0, 1.0)
    share = torch.zeros(len(library.names))
    for _ in range(40):
        env.reset(torch.arange(32))
        share += torch.bincount(env.clip, minlength=len(share))
    share = share / share.sum() / library.weights
    assert share[hard].min() > 3 * share[~hard].mean()
