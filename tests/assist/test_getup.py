"""How firmly who is down is led up: less as falls end standing; and that this gets a body up that aims along the clip."""

from __future__ import annotations

import pytest
import torch

from pretrain.assist.getup import GetUpAssist
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import Protection

FIRST, SECOND = torch.tensor([0]), torch.tensor([1])
YES, NO = torch.tensor([True]), torch.tensor([False])


def test_it_weakens_while_falls_end_standing_and_firms_while_they_do_not():
    lift = GetUpAssist(torch.full((1,), 0.5), rate=0.1)
    lift.saw(FIRST.expand(8), YES.expand(8), NO.expand(8))
    lift.turn()
    assert lift.strength.item() < 0.5
    lift.saw(FIRST.expand(80), NO.expand(80), YES.expand(80))
    weak = lift.strength.item()
    lift.turn()
    assert weak < lift.strength.item() <= 1


def test_who_never_comes_up_along_a_clip_is_held_though_others_come_up_along_theirs():
    """Two in three lie face down and rise: together they would pass for enough, and who lies face up would be let go of."""
    lift = GetUpAssist(torch.full((2,), 0.5), rate=0.1)
    for _ in range(50):
        lift.saw(FIRST.expand(20), YES.expand(20), NO.expand(20))
        lift.saw(SECOND.expand(10), NO.expand(10), YES.expand(10))
        lift.turn()
    assert lift.strength.tolist() == [0, 1]
    assert lift.share.tolist() == [1, 0]


@pytest.mark.parametrize(("rise", "strength"), [(65, 0.45), (55, 0.5), (45, 0.55)])
def test_a_share_that_wavers_about_a_half_does_not_wear_a_hand_down(rise, strength):
    lift, hundred = GetUpAssist(torch.full((1,), 0.5), rate=0.1), torch.arange(100)
    lift.saw(FIRST.expand(100), hundred < rise, hundred >= rise)
    lift.turn()
    assert lift.strength.item() == pytest.approx(strength)


def test_it_stays_as_it_is_while_nobody_lies():
    lift = GetUpAssist(torch.full((1,), 0.5), rate=0.1)
    lift.turn()
    assert lift.strength == 0.5


def test_once_gone_it_does_not_come_back():
    lift = GetUpAssist(torch.full((1,), 0.011), rate=0.5)
    lift.saw(FIRST, YES, NO)
    lift.turn()
    lift.saw(FIRST.expand(99), NO.expand(99), YES.expand(99))
    lift.turn()
    assert not lift.strength


def test_a_snapshot_brings_it_back():
    first, second = GetUpAssist(torch.full((2,), 0.5), rate=0.1), GetUpAssist(torch.zeros(2))
    first.saw(SECOND.expand(2), torch.tensor([True, False]), torch.tensor([False, True]))
    second.restore(first.snapshot())
    assert second.strength.tolist() == [0.5, 0.5]
    assert second.share.tolist() == [0, 0.5]


def lying_env(every_clip, humanoid, strength: float) -> CharacterEnv:
    """16 characters that begin lying."""
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 16, 2),
        humanoid.skeleton,
        every_clip.library,
        window=3,
        episode_length=300,
        rng=torch.Generator().manual_seed(0),
        protection=Protection(120, lying=1.0),
        lift=GetUpAssist(torch.full((len(every_clip.library.names),), strength)),
    )
    env.reset(torch.arange(16))
    return env


def risen(env: CharacterEnv, every_clip) -> tuple[float, float]:
    """The share that has stood within 3 s, aiming where the clip that leads them goes; and the fastest root, rad/s."""
    walk = torch.full((16,), every_clip.library.names.index("walk"))
    rose, fastest, targets = torch.zeros(16, dtype=torch.bool), 0.0, env.state().joint_pos
    for _ in range(90):
        env.follow(walk)
        env.step(targets, walk)
        targets = every_clip.library.at(env.guide.clip, env.guide.time + 0.07).joint_pos
        rose |= env.falls.rose
        fastest = max(fastest, float(env.state().root_ang_vel.norm(dim=-1).max()))
    return float(rose.float().mean()), fastest


def test_who_is_led_up_stands_and_nobody_is_flung(every_clip, humanoid):
    env = lying_env(every_clip, humanoid, 0.5)
    share, fastest = risen(env, every_clip)
    assert share > 0.8
    assert fastest < 20  # the fastest clip, a backflip, turns at 9
    assert not env.broken
    alone, _ = risen(lying_env(every_clip, humanoid, 0.0), every_clip)
    assert alone < share - 0.4


def test_who_is_led_up_begins_where_the_clip_is_most_like_it(every_clip, humanoid):
    env = lying_env(every_clip, humanoid, 0.5)
    library, guide, everyone = every_clip.library, env.guide, torch.arange(16)
    clips = torch.tensor([library.names.index("getup_facedown"), library.names.index("getup_faceup")]).repeat(8)
    times = torch.linspace(0.5, 2.0, 16)
    env.begin(everyone, clips, times)
    walk = torch.full((16,), library.names.index("walk"))
    guide.clip[:] = walk
    guide.advance(walk, torch.ones(16, dtype=torch.bool), env.windows(), env.state())
    assert torch.equal(guide.clip, clips)
    torch.testing.assert_close(guide.time, times, atol=0.05, rtol=0)
    torch.testing.assert_close(guide.moved, torch.zeros(16, 3), atol=0.05, rtol=0)


def test_what_comes_of_lying_is_put_down_to_the_clip_that_led(every_clip, humanoid):
    env = lying_env(every_clip, humanoid, 0.5)
    risen(env, every_clip)
    rising = env.falls.ground.rising
    assert (env.lift.rose[rising] > 0).sum() >= 2  # some lie face up, some face down
    assert not env.lift.rose[~rising].any()
    assert not env.lift.stayed[~rising].any()
