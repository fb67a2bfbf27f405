"""Which environments are down, have fallen, or may still recover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.motion.library import pack
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import Falls, FallUpdate, Recovery, settle_on_ground
from pretrain.sim.ground import Ground

FOOT = 0
HAND = 1
WALK = 0
CRAWL = 1
GETUP = 2
GROUND = Ground(  # of a body with a foot and a hand
    allowed=torch.tensor([[True, False], [True, True], [True, False]]),
    lowest=torch.tensor([0.7, 0.2, 0.7]),
    rising=torch.tensor([False, False, True]),
    upright=torch.tensor([True, False, False]),
    steady=torch.tensor([True, False, False]),
    standing=0.85,
)
STANDING = torch.tensor([[True, False]])
ON_HANDS = torch.tensor([[True, True]])
TALL = torch.tensor([0.85])
LOW = torch.tensor([0.3])


def walking(recovery_steps: int, after_falls: bool = True) -> Falls:
    falls = Falls(GROUND, 1, Recovery(recovery_steps, after_falls))
    falls.begin(torch.tensor([0]), torch.tensor([WALK]))
    return falls


def step(
    falls: Falls, touching: torch.Tensor, height: torch.Tensor, clip: int | None = WALK
) -> FallUpdate:
    return falls.update(touching, height, None if clip is None else torch.tensor([clip]))


def falls_in(
    falls: Falls, touching: torch.Tensor, height: torch.Tensor, clip: int | None = WALK
) -> bool:
    return bool(step(falls, touching, height, clip).fallen)


def test_default_recovery_grants_no_steps():
    assert falls_in(walking(recovery_steps=90, after_falls=False), ON_HANDS, LOW)
    assert falls_in(Falls(GROUND, 1, Recovery()), ON_HANDS, LOW, clip=None)


def test_contacts_of_the_reference_clip_are_no_fall():
    falls = walking(recovery_steps=0)
    assert not falls_in(falls, ON_HANDS, LOW, CRAWL)
    assert not falls_in(falls, STANDING, TALL)
    assert falls_in(falls, ON_HANDS, LOW, WALK)


def test_env_has_fallen_after_lying_past_its_recovery_steps():
    falls = walking(recovery_steps=3)
    assert [falls_in(falls, ON_HANDS, LOW) for _ in range(5)] == [False, False, False, True, True]


def test_a_world_that_leaves_the_ground_is_down_until_it_is_up():
    falls = walking(recovery_steps=3)
    fallen = [
        falls_in(falls, touching, LOW) for touching in (ON_HANDS, STANDING, STANDING, STANDING)
    ]
    assert fallen == [False, False, False, True]


def test_coming_up_from_lying_is_distinguished_from_stumbling():
    for height, lay in ((TALL, False), (LOW, True)):
        falls = walking(recovery_steps=9)
        falls_in(falls, ON_HANDS, height)
        assert falls.was_lying.item() == lay
        assert step(falls, STANDING, TALL).recovered.item() == lay
        assert not falls.was_lying
        assert not step(falls, STANDING, TALL).recovered


def test_env_that_lay_is_up_only_after_standing_upright():
    cartwheel = replace(GROUND, lowest=torch.tensor([0.4, 0.2, 0.7]))
    for first, up in ((LOW, False), (TALL, True)):  # lay, or stumbled
        falls = Falls(cartwheel, 1, Recovery(9, after_falls=True))
        falls.begin(torch.tensor([0]), torch.tensor([WALK]))
        falls_in(falls, ON_HANDS, first)
        falls_in(falls, STANDING, torch.tensor([0.5]))
        assert falls.is_down.item() != up
        recovered = step(falls, STANDING, TALL).recovered
        assert not falls.steps_down
        assert recovered.item() != up  # after a stumble a world has not recovered


def test_a_lying_world_under_a_crawling_clip_has_not_recovered():
    falls = walking(recovery_steps=9)
    falls_in(falls, ON_HANDS, LOW)
    assert not step(falls, ON_HANDS, LOW, CRAWL).recovered
    assert not falls.was_lying
    assert not falls.steps_down


def test_env_times_out_on_the_ground_after_its_recovery_steps():
    falls = walking(recovery_steps=2)
    for _ in range(2):
        assert not step(falls, ON_HANDS, LOW).timed_out
    assert step(falls, ON_HANDS, LOW).timed_out


def test_standing_up_resets_the_time_down():
    falls = walking(recovery_steps=3)
    for _ in range(3):
        assert not any(falls_in(falls, ON_HANDS, LOW) for _ in range(3))
        assert not falls_in(falls, STANDING, TALL)
        assert falls.steps_down.tolist() == [0]


def test_switch_from_lying_to_upright_clip_grants_recovery_steps():
    one = torch.tensor([0])
    falls = walking(recovery_steps=3, after_falls=False)
    falls.allow_recovery(one, torch.tensor([WALK]), torch.tensor([CRAWL]))
    assert falls.max_steps_down.tolist() == [0]
    falls.allow_recovery(one, torch.tensor([CRAWL]), torch.tensor([WALK]))
    assert falls.max_steps_down.tolist() == [3]
    assert falls.steps_down.tolist() == [1]  # the first clip lies: that is no fall
    assert not falls_in(falls, ON_HANDS, LOW, WALK)
    assert falls.steps_down.tolist() == [2]


def test_env_starting_in_a_getup_clip_is_down_with_recovery_steps():
    falls = Falls(GROUND, 1, Recovery(3))
    falls.begin(torch.tensor([0]), torch.tensor([GETUP]))
    assert falls.steps_down.tolist() == [1]
    assert not falls_in(falls, ON_HANDS, LOW, GETUP)
    assert not falls_in(falls, STANDING, TALL, GETUP)
    assert falls.steps_down.tolist() == [0]
    assert [falls_in(falls, ON_HANDS, LOW, GETUP) for _ in range(4)] == [False, False, False, True]


def make(every_clip, humanoid, recovery: Recovery) -> CharacterEnv:
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 64, 1),
        humanoid.skeleton,
        every_clip.library,
        EpisodeConfig(window=3, length=300, recovery=recovery),
        rng=torch.Generator().manual_seed(0),
    )
    env.reset(torch.arange(64))
    return env


def test_an_episode_may_begin_lying_and_has_recovery_steps(every_clip, humanoid):
    env = make(every_clip, humanoid, Recovery(90, fall_init_prob=1.0))
    height = env.state().root_pos[:, 2]
    assert (height < 0.6 * env.falls.ground.standing).float().mean() > 0.9
    assert height.unique().numel() > 32  # in different poses
    assert env.falls.ground.rising[env.clip].all()
    torch.testing.assert_close(env.states[:, 0], env.state().flatten(), atol=1e-5, rtol=0)
    walk = torch.full((64,), every_clip.library.names.index("walk"))
    fell = torch.stack([env.step(torch.zeros(64, 28), walk).fell for _ in range(95)])
    assert not fell[:85].any()  # some need a few steps to reach the ground
    assert fell[-1].float().mean() > 0.9  # zero targets do not get a character up


def test_a_share_of_episodes_begins_lying_with_time_to_get_up(every_clip, humanoid, rng):
    env = make(every_clip, humanoid, Recovery(90, fall_init_prob=0.25))
    every = torch.arange(64).repeat(50)
    lying = env.falls.draw_fall_init(every, rng)
    assert len(lying) / len(every) == pytest.approx(0.25, abs=0.03)
    began_lying = []
    rising = []
    protected = []
    for _ in range(50):
        env.reset(torch.arange(64))
        began_lying.append(env.began_lying.clone())
        rising.append(env.falls.ground.rising[env.clip])
        protected.append(env.falls.max_steps_down == 90)
    lying = torch.cat(began_lying)
    protected = torch.cat(protected)
    assert lying.float().mean() == pytest.approx(0.25, abs=0.03)
    assert protected[lying].all()
    assert torch.equal(protected, torch.cat(rising))


@pytest.mark.parametrize("after_falls", [False, True])
def test_recovery_after_falls_of_upright_clips_is_optional(every_clip, humanoid, after_falls):
    env = make(every_clip, humanoid, Recovery(90, after_falls=after_falls))
    rising = env.falls.ground.rising[env.clip]
    assert not rising.all()
    assert torch.equal(env.falls.max_steps_down == 90, rising | after_falls)


def test_a_snapshot_has_which_worlds_are_down(every_clip, humanoid):
    def run(env: CharacterEnv, steps: int) -> torch.Tensor:
        for _ in range(steps):
            done = env.step(torch.zeros(64, 28), env.clip).fell
            env.reset(done.nonzero()[:, 0])
        return torch.stack([env.falls.steps_down, env.falls.max_steps_down])

    first, second = (
        make(every_clip, humanoid, Recovery(20, after_falls=True, fall_init_prob=0.3))
        for _ in range(2)
    )
    run(first, 30)
    snapshot = first.snapshot()
    ahead = run(first, 30)
    assert ahead[0].any()
    second.restore(snapshot)
    assert torch.equal(run(second, 30), ahead)


def test_settling_from_an_infeasible_clip_ends_in_finite_states(training_data, humanoid, rng):
    walk = training_data.dataset.clips[0]
    along = np.arange(len(walk))[:, None] * np.array([20 / 30, 0, 0])
    jumping = replace(walk, name="fast", root_pos=walk.root_pos + along * 60)
    library = pack((walk, jumping), (1.0, 1.0))
    backend = make_backend("mujoco", humanoid, 64, 1)
    backend.place(torch.arange(64), library.at(torch.ones(64, dtype=torch.long), torch.zeros(64)))
    assert backend.advance(torch.zeros(64, 28)).all()
    lies = settle_on_ground(backend, humanoid.skeleton, library, rng)
    assert torch.isfinite(lies.flatten()).all()
    assert lies.root_pos[:, 2].median() < 0.5
