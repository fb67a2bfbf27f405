"""The hand that lifts: upwards and upright, weaker as falls end standing, and only for who is down."""

from __future__ import annotations

import torch

from pretrain.characters.rotations import from_axis_angle
from pretrain.characters.state import unflat
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv
from pretrain.sim.falls import Protection
from pretrain.sim.lift import LIFT, Lift

YES, NO = torch.tensor([True]), torch.tensor([False])


def test_it_lifts_and_turns_upright():
    state = unflat(torch.zeros(1, 69))
    state.root_rot[:] = from_axis_angle("x", torch.tensor([1.0]))
    wrench = Lift(start=0.5).wrench(state)[0]
    assert wrench[:3].tolist() == [0, 0, 0.5 * LIFT]
    assert wrench[3] < -30  # about x, against the lean


def test_it_weakens_while_falls_end_standing_and_firms_while_they_do_not():
    lift = Lift(start=0.5, rate=0.1)
    lift.saw(YES.expand(8), NO)
    lift.turn()
    assert lift.strength.item() < 0.5
    lift.saw(NO, YES.expand(80))
    weak = lift.strength.item()
    lift.turn()
    assert weak < lift.strength.item() <= 1


def test_it_stays_as_it_is_while_nobody_lies():
    lift = Lift(start=0.5, rate=0.1)
    lift.turn()
    assert lift.strength == 0.5


def test_once_gone_it_does_not_come_back():
    lift = Lift(start=0.011, rate=0.5)
    lift.saw(YES, NO)
    lift.turn()
    lift.saw(NO, YES.expand(99))
    lift.turn()
    assert not lift.strength


def test_a_snapshot_brings_it_back():
    first, second = Lift(start=0.5, rate=0.1), Lift()
    first.saw(YES, YES)
    second.restore(first.snapshot())
    assert (second.strength, second.share) == (0.5, 0.5)


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
        lift=Lift(start=strength),
    )
    env.reset(torch.arange(16))
    return env


def step(env: CharacterEnv, every_clip) -> None:
    env.step(torch.zeros(16, 28), torch.full((16,), every_clip.library.names.index("getup_facedown")))


def spin(env: CharacterEnv, every_clip) -> float:
    """The fastest root after another step, rad/s."""
    step(env, every_clip)
    return float(env.state().root_ang_vel.norm(dim=-1).max())


def heights(every_clip, humanoid, strength: float) -> torch.Tensor:
    """Of roots, after a second."""
    env = lying_env(every_clip, humanoid, strength)
    for _ in range(30):
        step(env, every_clip)
    return env.state().root_pos[:, 2]


def test_who_is_lifted_comes_up_higher(every_clip, humanoid):
    assert heights(every_clip, humanoid, 1.0).mean() > heights(every_clip, humanoid, 0.0).mean() + 0.2


def test_nobody_is_flung(every_clip, humanoid):
    env = lying_env(every_clip, humanoid, 1.0)
    fastest = [spin(env, every_clip) for _ in range(60)]
    assert max(fastest) < 20  # rad/s; the fastest clip, a backflip, turns at 9
    assert not env.broken
