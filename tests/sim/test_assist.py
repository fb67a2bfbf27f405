"""The hand that holds the character upright: which way it turns, and when it lets go."""

from __future__ import annotations

from dataclasses import replace

import torch

from pretrain.characters.rotations import from_axis_angle, multiply, rotate, turn
from pretrain.characters.state import unflat
from pretrain.sim.assist import DAMPING, STIFFNESS, LettingGo, upright_torque


def leaning(axis: str, angle: float):
    still = torch.zeros(1, 69)
    return replace(unflat(still), root_rot=from_axis_angle(axis, torch.tensor([angle])))


def test_it_turns_back_against_the_lean():
    for axis, index in (("x", 0), ("y", 1)):
        for angle in (0.1, -0.1):
            torque = upright_torque(leaning(axis, angle))[0]
            assert torch.sign(torque[index]) == -torch.sign(torch.tensor(angle))
            torch.testing.assert_close(torque[index].abs(), torch.tensor(STIFFNESS * 0.1), rtol=0.01, atol=0)


def test_standing_straight_is_left_alone_whatever_the_heading():
    upright = replace(unflat(torch.zeros(3, 69)), root_rot=turn(torch.tensor([0.0, 1.0, 3.0])))
    torch.testing.assert_close(upright_torque(upright), torch.zeros(3, 3), atol=1e-3, rtol=0)


def test_it_brakes_tumbling_but_not_turning():
    spinning = replace(leaning("z", 0.0), root_ang_vel=torch.tensor([[1.0, 2.0, 3.0]]))
    torch.testing.assert_close(upright_torque(spinning), torch.tensor([[-DAMPING, -2 * DAMPING, 0.0]]))


def test_the_torque_does_not_depend_on_where_the_scene_faces():
    lean, yaw = leaning("x", 0.2), turn(torch.tensor([1.3]))
    turned = replace(lean, root_rot=multiply(yaw, lean.root_rot))
    torch.testing.assert_close(upright_torque(turned), rotate(yaw, upright_torque(lean)), atol=1e-3, rtol=0)


def test_it_weakens_while_episodes_are_long_and_comes_back_when_they_are_not():
    rule = LettingGo(steps=100, rate=0.1)
    assert rule.next(0.5, 150) == 0.45
    assert rule.next(0.5, 80) == 0.5
    assert rule.next(0.5, 30) > 0.5
    assert rule.next(1.0, 30) == 1.0


def test_once_gone_it_stays_gone():
    rule = LettingGo(steps=100, rate=0.1)
    assert rule.next(0.009, 10) == 0.0
    assert rule.next(0.0, 10) == 0.0
