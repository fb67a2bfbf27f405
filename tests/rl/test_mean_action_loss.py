"""The loss that draws mean actions to a target."""

from __future__ import annotations

import pytest
import torch

from pretrain.rl.mean_action_loss import ActionTarget, with_mean_action_loss

ACTIONS = 3
TARGET = ActionTarget(action="other_mean", share="has_other", metric="distance")


def test_loss_is_the_mean_of_squared_distances_by_share():
    batch = {"other_mean": torch.ones(2, ACTIONS), "has_other": torch.tensor([0.25, 0.0])}
    loss = with_mean_action_loss(
        lambda mean, batch: (torch.tensor(7.0), {"kept": torch.ones(())}), TARGET, 4.0
    )
    total, metrics = loss(torch.zeros(2, ACTIONS), batch)
    assert metrics["distance"].item() == pytest.approx(0.25 * ACTIONS / 2)
    assert metrics["kept"] == 1
    assert total.item() == pytest.approx(7 + 4.0 * 0.25 * ACTIONS / 2)


def test_gradient_points_from_the_target_where_there_is_one():
    mean = torch.ones(2, ACTIONS, requires_grad=True)
    batch = {"other_mean": torch.zeros(2, ACTIONS), "has_other": torch.tensor([1.0, 0.0])}
    loss = with_mean_action_loss(lambda mean, batch: (mean.new_zeros(()), {}), TARGET, 3.0)
    loss(mean, batch)[0].backward()
    torch.testing.assert_close(mean.grad, torch.tensor([[3.0] * ACTIONS, [0.0] * ACTIONS]))
