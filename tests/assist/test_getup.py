"""The get-up assistance: its schedule, and its effect on a lying character."""

from __future__ import annotations

import pytest
import torch

from pretrain.assist.curriculum import Curriculum
from pretrain.assist.forces import AssistForces
from pretrain.assist.getup import GETUP_START, GetUpAssist
from pretrain.assist.reference_tracker import NONE
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.falls import Recovery
from tests.assist.assistances import make_assistance, make_tracker

FIRST = torch.tensor([0])
SECOND = torch.tensor([1])
YES = torch.tensor([True])
NO = torch.tensor([False])


def test_strength_decays_on_recoveries_and_grows_on_timeouts():
    getup = GetUpAssist(torch.full((1,), 0.5), rate=0.1)
    getup.record(FIRST.expand(8), YES.expand(8), NO.expand(8))
    getup.step_schedule()
    assert getup.strength.item() < 0.5
    getup.record(FIRST.expand(80), NO.expand(80), YES.expand(80))
    weak = getup.strength.item()
    getup.step_schedule()
    assert weak < getup.strength.item() <= 1


def test_strength_is_scheduled_per_clip():
    """Two in three lie face down and recover: a shared strength would decay, although none of those
    face up recover."""
    getup = GetUpAssist(torch.full((2,), 0.5), rate=0.1)
    for _ in range(50):
        getup.record(FIRST.expand(20), YES.expand(20), NO.expand(20))
        getup.record(SECOND.expand(10), NO.expand(10), YES.expand(10))
        getup.step_schedule()
    assert getup.strength.tolist() == [0, 1]
    assert getup.recovery_rate.tolist() == [1, 0]


@pytest.mark.parametrize(("rise", "strength"), [(65, 0.45), (55, 0.5), (45, 0.55)])
def test_strength_falls_stays_or_grows_with_the_recovery_rate(rise, strength):
    getup = GetUpAssist(torch.full((1,), 0.5), rate=0.1)
    hundred = torch.arange(100)
    getup.record(FIRST.expand(100), hundred < rise, hundred >= rise)
    getup.step_schedule()
    assert getup.strength.item() == pytest.approx(strength)


def test_strength_is_unchanged_without_recorded_falls():
    getup = GetUpAssist(torch.full((1,), 0.5), rate=0.1)
    getup.step_schedule()
    assert getup.strength == 0.5


def test_strength_at_zero_stays_zero():
    getup = GetUpAssist(torch.full((1,), 0.009), rate=0.5)
    getup.record(FIRST, YES, NO)
    getup.step_schedule()
    getup.record(FIRST.expand(99), NO.expand(99), YES.expand(99))
    getup.step_schedule()
    assert not getup.strength


def test_snapshot_restores_the_state():
    first = GetUpAssist(torch.full((2,), 0.5), rate=0.1)
    second = GetUpAssist(torch.zeros(2))
    first.record(SECOND.expand(2), torch.tensor([True, False]), torch.tensor([False, True]))
    second.restore(first.snapshot())
    assert second.strength.tolist() == [0.5, 0.5]
    assert second.recovery_rate.tolist() == [0, 0.5]


def lying_env(every_clip, humanoid, strength: float) -> tuple[CharacterEnv, AssistForces]:
    """16 characters that begin lying, and their assistance."""
    library = every_clip.library
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 16, 2),
        humanoid.skeleton,
        library,
        EpisodeConfig(window=3, length=300, recovery=Recovery(120, fall_init_prob=1.0)),
        rng=torch.Generator().manual_seed(0),
    )
    env.reset(torch.arange(16))
    tracker = make_tracker(library, env.starts, env.falls.ground.rising, 16)
    tracker.start(torch.arange(16), env.clip, env.clip_time)
    tracker.clip[:] = NONE
    getup = GetUpAssist(torch.full((len(library.names),), strength))
    assistance = make_assistance(Curriculum(library.weights, episode_length=300), 16, getup)
    return env, AssistForces(env, assistance, tracker)


def recovered(env: CharacterEnv, forces: AssistForces, every_clip) -> tuple[float, float]:
    """The share that recovered within 3 s with targets along the reference, and the fastest root,
    rad/s."""
    walk = torch.full((16,), every_clip.library.names.index("walk"))
    up = torch.zeros(16, dtype=torch.bool)
    fastest = 0.0
    targets = env.state().joint_pos
    tracker = forces.tracker
    for _ in range(90):
        tracker.advance(walk, env.falls.is_down, env.windows(), env.state())
        forces.apply(walk)
        outcome = env.step(targets, walk)
        forces.assistance.getup.record(tracker.clip, outcome.recovered, outcome.timed_out_on_ground)
        targets = every_clip.library.at(tracker.clip, tracker.phase + 0.07).joint_pos
        up |= outcome.recovered
        fastest = max(fastest, float(env.state().root_ang_vel.norm(dim=-1).max()))
    return float(up.float().mean()), fastest


def test_assisted_body_gets_up_at_bounded_speed(every_clip, humanoid):
    env, forces = lying_env(every_clip, humanoid, GETUP_START)
    share, fastest = recovered(env, forces, every_clip)
    assert share > 0.8
    assert fastest < 20  # the fastest clip, a backflip, turns at 9
    assert not env.num_broken
    alone, _ = recovered(*lying_env(every_clip, humanoid, 0.0), every_clip)
    assert alone < share - 0.4


def test_reference_of_a_fallen_body_starts_at_nearest_getup(every_clip, humanoid):
    env, forces = lying_env(every_clip, humanoid, 0.5)
    library = every_clip.library
    tracker = forces.tracker
    every = torch.arange(16)
    clips = torch.tensor(
        [library.names.index("getup_facedown"), library.names.index("getup_faceup")]
    ).repeat(8)
    times = torch.linspace(0.5, 2.0, 16)
    env.begin(every, clips, times)
    walk = torch.full((16,), library.names.index("walk"))
    tracker.start(every, walk, times)
    tracker.advance(walk, torch.ones(16, dtype=torch.bool), env.windows(), env.state())
    assert torch.equal(tracker.clip, clips)
    torch.testing.assert_close(tracker.phase, times, atol=0.05, rtol=0)
    torch.testing.assert_close(tracker.anchor_pos, torch.zeros(16, 3), atol=0.05, rtol=0)


def test_recoveries_and_timeouts_count_for_getup_clips_only(every_clip, humanoid):
    env, forces = lying_env(every_clip, humanoid, 0.5)
    recovered(env, forces, every_clip)
    rising = env.falls.ground.rising
    assert (
        forces.assistance.getup.recovered[rising] > 0
    ).sum() >= 2  # some lie face up, some face down
    assert not forces.assistance.getup.recovered[~rising].any()
    assert not forces.assistance.getup.timed_out[~rising].any()
