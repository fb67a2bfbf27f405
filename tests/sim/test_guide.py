"""The hand that leads along clips that turn over."""

from __future__ import annotations

import torch

from pretrain.characters.rotations import conjugate, log, multiply, rotate, turn
from pretrain.sim.backend import make_backend
from pretrain.sim.curriculum import Curriculum, LettingGo
from pretrain.sim.env import CharacterEnv

LED = ("kick", "cartwheel", "roll")


def make(every_clip, humanoid, strength: float) -> tuple[CharacterEnv, torch.Tensor]:
    """Four worlds at the beginning of each clip that is LED, and the clips."""
    library = every_clip.library
    clips = torch.tensor([library.names.index(name) for name in LED]).repeat_interleave(4)
    env = CharacterEnv(
        make_backend("mujoco", humanoid, len(clips), 1),
        humanoid.skeleton,
        library,
        window=3,
        episode_length=300,
        rng=torch.Generator().manual_seed(0),
        curriculum=Curriculum(library.weights, episode_length=300, hand=LettingGo(strength, 1.0, 0.0)),
    )
    env.begin(torch.arange(len(clips)), clips, torch.zeros(len(clips)))
    return env, clips


def off_course(env: CharacterEnv, aim: torch.Tensor) -> torch.Tensor:
    """Angle between each root and where it should be (N, 4), (N,) rad."""
    return log(multiply(aim, conjugate(env.state().root_rot))).norm(dim=-1)


def test_a_body_that_aims_along_a_clip_gets_over_with_a_hand_and_not_without(every_clip, humanoid):
    furthest = {}
    for strength in (0.0, 1.0):
        env, clips = make(every_clip, humanoid, strength)
        time, worst = torch.zeros(len(clips)), torch.zeros(len(clips))
        for _ in range(40):
            env.step(every_clip.library.at(clips, time + 0.07).joint_pos, clips)
            time += 1 / 30
            worst = torch.maximum(worst, off_course(env, every_clip.library.at(clips, time).root_rot))
        furthest[strength] = worst.view(len(LED), -1).amax(1)
    assert (furthest[1.0] < 0.8).all()
    assert (furthest[0.0] > 1.2).all()


def test_where_a_clip_ends_or_is_asked_for_it_begins_where_the_character_is(every_clip, humanoid):
    library, guide = every_clip.library, make(every_clip, humanoid, 1.0)[0].guide
    kick, roll = (library.names.index(name) for name in ("kick", "roll"))
    one, asked = torch.tensor([0]), torch.tensor([kick])
    for begun in (kick, roll):
        guide.begin(one, torch.tensor([begun]), library.durations[[begun]])
        there = library.at(asked, torch.zeros(1))
        turned, moved = turn(torch.tensor([2.0])), torch.tensor([[3.0, -4.0, 0.0]])
        state = there.map(torch.clone)
        state.root_pos[:] = rotate(turned, there.root_pos) + moved
        state.root_rot[:] = multiply(turned, there.root_rot)
        state.root_vel[:], state.root_ang_vel[:] = rotate(turned, there.root_vel), rotate(turned, there.root_ang_vel)
        assert guide.along(one, asked, state).norm() < 0.1
        assert (guide.time[0].item(), guide.clip[0].item()) == (0.0, kick)
        torch.testing.assert_close(guide.moved[:1], moved, atol=1e-4, rtol=0)


def test_a_snapshot_goes_on(every_clip, humanoid):
    def run(env: CharacterEnv, clips: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            env.step(torch.zeros(len(clips), 28), clips)
        return env.state().flat()

    (first, clips), (second, _) = (make(every_clip, humanoid, 1.0) for _ in range(2))
    run(first, clips)
    second.restore(first.snapshot())
    assert torch.equal(run(first, clips), run(second, clips))
