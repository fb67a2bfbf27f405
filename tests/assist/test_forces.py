"""Direction, size and effect of the assistance forces, and their removal."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.assist.curriculum import AssistSchedule, Curriculum
from pretrain.assist.forces import (
    DRIVE_GAIN,
    MAX_DRIVE_FORCE,
    UPRIGHT_DAMPING,
    UPRIGHT_STIFFNESS,
    AssistForces,
    drive_force,
    mean_velocities,
    upright_torque,
)
from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.state import unflatten
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from tests.assist.assistances import PERIOD, make_assistance, make_switches, make_tracker


def leaning(axis: str, angle: float):
    still = torch.zeros(1, 69)
    return replace(unflatten(still), root_rot=from_axis_angle(axis, torch.tensor([angle])))


def test_upright_torque_opposes_the_lean():
    for axis, index in (("x", 0), ("y", 1)):
        for angle in (0.1, -0.1):
            torque = upright_torque(leaning(axis, angle))[0]
            assert torch.sign(torque[index]) == -torch.sign(torch.tensor(angle))
            torch.testing.assert_close(
                torque[index].abs(), torch.tensor(UPRIGHT_STIFFNESS * 0.1), rtol=0.01, atol=0
            )


def test_upright_torque_is_zero_when_upright_at_any_heading():
    upright = replace(
        unflatten(torch.zeros(3, 69)), root_rot=from_axis_angle("z", torch.tensor([0.0, 1.0, 3.0]))
    )
    torch.testing.assert_close(upright_torque(upright), torch.zeros(3, 3), atol=1e-3, rtol=0)


def test_the_torque_brakes_tumbling_but_not_turning():
    spinning = replace(leaning("z", 0.0), root_ang_vel=torch.tensor([[1.0, 2.0, 3.0]]))
    torch.testing.assert_close(
        upright_torque(spinning), torch.tensor([[-UPRIGHT_DAMPING, -2 * UPRIGHT_DAMPING, 0.0]])
    )


def test_upright_torque_turns_with_the_scene():
    lean = leaning("x", 0.2)
    yaw = from_axis_angle("z", torch.tensor([1.3]))
    turned = replace(lean, root_rot=multiply(yaw, lean.root_rot))
    torch.testing.assert_close(
        upright_torque(turned), rotate(yaw, upright_torque(lean)), atol=1e-3, rtol=0
    )


FORWARD = torch.tensor([[3.5, 0.0, 0.0]])


def test_drive_force_is_proportional_to_velocity_error():
    still = leaning("z", 0.0)
    assert drive_force(still, 0.1 * FORWARD)[0].tolist() == pytest.approx(
        [0.35 * DRIVE_GAIN, 0, 0], rel=1e-4
    )
    # the vertical velocity has no effect
    there = replace(still, root_vel=FORWARD + torch.tensor([[0.0, 0.0, 2.0]]))
    assert not drive_force(there, FORWARD).any()
    assert drive_force(replace(still, root_vel=2 * FORWARD), FORWARD)[0, 0] < 0


def test_the_force_is_bounded():
    assert drive_force(leaning("z", 0.0), 100 * FORWARD).norm() == pytest.approx(MAX_DRIVE_FORCE)


def test_the_force_follows_the_heading():
    for yaw in (0.0, 1.3, 3.0):
        rot = from_axis_angle("z", torch.tensor([yaw]))
        led = drive_force(replace(leaning("z", 0.0), root_rot=rot), FORWARD)
        torch.testing.assert_close(
            led / led.norm(), rotate(rot, torch.tensor([[1.0, 0.0, 0.0]])), atol=1e-4, rtol=0
        )


def test_mean_velocities_are_those_of_the_clips(library):
    velocity = dict(zip(library.names, mean_velocities(library), strict=True))
    assert velocity["run"][0] == pytest.approx(3.5, abs=0.2)
    assert velocity["walk"][0] == pytest.approx(1.0, abs=0.1)
    assert velocity["turn_right0"][1] == pytest.approx(
        -float(velocity["turn_right0_mirror"][1]), abs=1e-4
    )


def make(
    humanoid, library, strength: float = 0.0, switch: float = 0.0
) -> tuple[CharacterEnv, AssistForces]:
    """32 characters, an assistance that ends in one iteration, and one for switches."""
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 32, 1),
        humanoid.skeleton,
        library,
        EpisodeConfig(window=3, length=300),
        rng=torch.Generator().manual_seed(0),
    )
    schedule = AssistSchedule(start=strength, steps=1.0, rate=1.0)
    curriculum = Curriculum(library.weights, episode_length=300, schedule=schedule)
    tracker = make_tracker(library, env.starts, env.falls.ground.rising, 32)
    env.reset(torch.arange(32))
    tracker.start(torch.arange(32), env.clip, env.clip_time)
    switches = make_switches(len(library.names), 32, switch)
    assistance = make_assistance(curriculum, 32, switches=switches)
    return env, AssistForces(env, assistance, tracker)


def pose(env: CharacterEnv) -> torch.Tensor:
    return env.state().joint_pos.clone()


def test_an_assisted_body_stays_up_where_a_free_one_falls(humanoid, library):
    share = {}
    for strength in (0.0, 1.0):
        env, forces = make(humanoid, library, strength)
        targets = pose(env)
        fell = torch.zeros(32, dtype=torch.bool)
        for _ in range(60):
            forces.apply(env.clip)
            fell |= env.step(targets, env.clip).fell
        share[strength] = fell.float().mean()
    # in a fixed stride pose at speed, even an assisted body may fall on its knees
    assert share[0.0] > 0.9
    assert share[1.0] < 0.3


def test_drive_force_drives_body_to_the_skill_clips_velocity(humanoid, library):
    env, forces = make(humanoid, library, 1.0)
    ground = env.falls.ground
    # treat the run as steady, although it leans: its speed differs from that of the walks
    env.falls.ground = replace(ground, steady=torch.ones_like(ground.steady))
    walk = library.names.index("walk")
    run = library.names.index("run")
    env.begin(torch.arange(32), torch.full((32,), walk), torch.zeros(32))
    clips = torch.tensor([walk, run]).repeat(16)
    targets = pose(env)
    for _ in range(30):
        forces.apply(clips)
        env.step(targets, clips)
    speed = env.state().root_vel[:, :2].norm(dim=-1)
    assert speed[1::2].mean() > speed[::2].mean() + 0.5


def test_forces_are_cleared_when_assistance_reaches_zero(humanoid, library):
    (free, none) = make(humanoid, library)
    (assisted, forces) = make(humanoid, library, 0.5)
    every = torch.arange(32)
    forces.apply(assisted.clip)
    assisted.step(pose(assisted))
    forces.assistance.curriculum.step_schedule()
    assert not forces.assistance.curriculum.assist_strength.any()
    for env in (free, assisted):
        env.backend.place(
            every, free.library.at(torch.zeros(32, dtype=torch.long), torch.linspace(0, 1, 32))
        )
    targets = pose(free)
    for env, pushes in ((free, none), (assisted, forces)):
        pushes.apply(env.clip)
        env.step(targets)
    assert torch.equal(free.state().flatten(), assisted.state().flatten())


def test_a_switch_drives_the_body_to_the_new_velocity_and_no_other(humanoid, library):
    env, forces = make(humanoid, library, switch=1.0)
    walk = library.names.index("walk")
    run = library.names.index("run")
    every = torch.arange(32)
    env.begin(every, torch.full((32,), walk), torch.zeros(32))
    clips = torch.full((32,), run)
    forces.assistance.switches.start(every, env.clip, every % 2 == 0)
    targets = pose(env)
    for _ in range(PERIOD):
        forces.apply(clips)
        env.step(targets, clips)
        forces.assistance.switches.record(clips, every < 0, every < 0)
    speed = env.state().root_vel[:, :2].norm(dim=-1)
    assert speed[::2].mean() > speed[1::2].mean() + 0.5
