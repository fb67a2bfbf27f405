"""The hand that holds the character upright: which way it turns, and when it lets go; and where episodes begin."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.assist.curriculum import (
    DAMPING,
    PULL,
    STIFFNESS,
    STRONGEST,
    AssistSchedule,
    Curriculum,
    leading_force,
    paces,
    upright_torque,
)
from pretrain.characters.rotations import from_axis_angle, multiply, rotate
from pretrain.characters.state import unflat


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
    upright = replace(unflat(torch.zeros(3, 69)), root_rot=from_axis_angle("z", torch.tensor([0.0, 1.0, 3.0])))
    torch.testing.assert_close(upright_torque(upright), torch.zeros(3, 3), atol=1e-3, rtol=0)


def test_it_brakes_tumbling_but_not_turning():
    spinning = replace(leaning("z", 0.0), root_ang_vel=torch.tensor([[1.0, 2.0, 3.0]]))
    torch.testing.assert_close(upright_torque(spinning), torch.tensor([[-DAMPING, -2 * DAMPING, 0.0]]))


def test_the_torque_does_not_depend_on_where_the_scene_faces():
    lean, yaw = leaning("x", 0.2), from_axis_angle("z", torch.tensor([1.3]))
    turned = replace(lean, root_rot=multiply(yaw, lean.root_rot))
    torch.testing.assert_close(upright_torque(turned), rotate(yaw, upright_torque(lean)), atol=1e-3, rtol=0)


FORWARD = torch.tensor([[3.5, 0.0, 0.0]])


def test_it_leads_to_the_pace_and_no_further():
    still = leaning("z", 0.0)
    assert leading_force(still, 0.1 * FORWARD)[0].tolist() == pytest.approx([0.35 * PULL, 0, 0], rel=1e-4)
    there = replace(still, root_vel=FORWARD + torch.tensor([[0.0, 0.0, 2.0]]))  # what is up or down is left alone
    assert not leading_force(there, FORWARD).any()
    assert leading_force(replace(still, root_vel=2 * FORWARD), FORWARD)[0, 0] < 0


def test_it_is_never_stronger_than_it_may_be():
    assert leading_force(leaning("z", 0.0), 100 * FORWARD).norm() == pytest.approx(STRONGEST)


def test_it_leads_along_the_heading():
    for yaw in (0.0, 1.3, 3.0):
        rot = from_axis_angle("z", torch.tensor([yaw]))
        led = leading_force(replace(leaning("z", 0.0), root_rot=rot), FORWARD)
        torch.testing.assert_close(led / led.norm(), rotate(rot, torch.tensor([[1.0, 0.0, 0.0]])), atol=1e-4, rtol=0)


def test_paces_are_those_of_the_clips(library):
    pace = dict(zip(library.names, paces(library), strict=True))
    assert pace["run"][0] == pytest.approx(3.5, abs=0.2)
    assert pace["walk"][0] == pytest.approx(1.0, abs=0.1)
    assert pace["turn_right0"][1] == pytest.approx(-float(pace["turn_right0_mirror"][1]), abs=1e-4)


def test_it_weakens_while_episodes_are_long_and_comes_back_when_they_are_not():
    rule = AssistSchedule(start=0.5, steps=100, rate=0.1)
    strength = rule.next(torch.tensor([0.5, 0.5, 0.5, 1.0]), torch.tensor([150.0, 80.0, 30.0, 30.0]))
    torch.testing.assert_close(strength, torch.tensor([0.45, 0.5, 0.55, 1.0]))


def test_once_gone_it_stays_gone():
    rule = AssistSchedule(start=0.5, steps=100, rate=0.1)
    assert rule.next(torch.tensor([0.009, 0.0]), torch.tensor([10.0, 10.0])).tolist() == [0.0, 0.0]


def begun(falls: list[int], focus: float = 3.0) -> Curriculum:
    """Two clips, 100 steps each, in which so many worlds fell."""
    made = Curriculum(torch.tensor([0.5, 0.5]), episode_length=50, hand=AssistSchedule(0.5, 30, 0.1), focus=focus)
    for clip, count in enumerate(falls):
        made.saw(torch.full((100,), clip), torch.arange(100) < count)
    return made


def test_each_clip_has_its_own_record():
    assert begun([2, 10]).lengths.tolist() == [50.0, 10.0]


def test_each_clip_is_held_by_its_own_record():
    curriculum = begun([2, 10])
    curriculum.turn()
    torch.testing.assert_close(curriculum.assist, torch.tensor([0.45, 0.55]))


def test_weights_follow_the_falls_within_bounds():
    assert begun([0, 0]).weights.tolist() == [0.5, 0.5]
    torch.testing.assert_close(begun([2, 4]).weights, torch.tensor([1 / 3, 2 / 3]))
    torch.testing.assert_close(
        begun([2, 100]).weights, torch.tensor([0.25, 0.75])
    )  # 50 times as short, 3 times as often
    assert begun([2, 100], focus=1.0).weights.tolist() == [0.5, 0.5]


def test_only_what_is_sought_is_begun_more_often():
    curriculum = begun([2, 100])
    curriculum.sought = torch.tensor([True, False])
    torch.testing.assert_close(curriculum.weights, torch.tensor([0.5, 0.5]))


def test_old_falls_are_forgotten():
    curriculum = begun([0, 50])
    for _ in range(60):
        curriculum.turn()
        curriculum.saw(torch.arange(2).repeat(50), torch.zeros(100, dtype=torch.bool))
    assert curriculum.lengths.min() > 500


def test_a_snapshot_brings_it_back():
    first, second = begun([2, 10]), begun([50, 0])
    first.turn()
    second.restore(first.snapshot())
    assert torch.equal(first.assist, second.assist)
    assert torch.equal(first.weights, second.weights)
