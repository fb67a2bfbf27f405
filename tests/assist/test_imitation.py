"""The imitation reward, and the losses towards the reference pose."""

from __future__ import annotations

import math

import pytest
import torch

from pretrain.assist.imitation import (
    ERROR_SCALE,
    LEG_SHARE,
    imitation_reward,
    with_pose_gradient,
)
from pretrain.rl.rollout import Rollout


def rollout_of(error: list[float], excess: list[float]) -> Rollout:
    nothing = torch.zeros(1, 3)
    flag = torch.zeros(1, 3, dtype=torch.bool)
    return Rollout(
        {},
        {},
        nothing,
        nothing,
        nothing,
        nothing,
        flag,
        flag,
        flag,
        {
            "tracking_error": torch.tensor([error]),
            "velocity_excess": torch.tensor([excess]),
        },
    )


def test_imitation_reward_is_1_on_the_clip_and_decays_with_error():
    rollout = rollout_of([0.0, ERROR_SCALE, 50.0], [0.0, 0.0, 0.0])
    assert imitation_reward(rollout)[0].tolist() == pytest.approx([1.0, math.exp(-1), 0.0])


def test_imitation_reward_decays_with_velocity_excess():
    rollout = rollout_of([0.0, 0.0, ERROR_SCALE], [0.0, 2.0, 2.0])
    rewards = imitation_reward(rollout)[0].tolist()
    assert rewards == pytest.approx([1.0, math.exp(-2), math.exp(-3)])


def test_pose_gradient_scales_with_error_and_leg_share_unless_assisted():
    mean = torch.zeros(3, 3, requires_grad=True)
    error = torch.tensor([[0.2, -0.1, 0.0]]).repeat(3, 1)
    batch = {
        "pose_error": error,
        "tracking_error": torch.tensor([0.0, ERROR_SCALE, 0.0]),
        "assist_strength": torch.tensor([0.0, 0.0, 0.1]),
    }
    legs = torch.tensor([False, True, False])
    total, metrics = with_pose_gradient(lambda mean, batch: (torch.tensor(7.0), {}), legs, 2.0)(
        mean, batch
    )
    (slope,) = torch.autograd.grad(total, mean)
    steep = torch.tensor([1.0, math.exp(-1), 0.0])[:, None] * torch.tensor([1.0, LEG_SHARE, 1.0])
    torch.testing.assert_close(-slope, 2.0 / 3 * steep * error)
    assert metrics["pose_error"].item() == pytest.approx(math.sqrt(0.05 / 3))
