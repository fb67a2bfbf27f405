"""Action smoothing: its loss, and which steps have neighbors."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.rl.action_smoothing import NEIGHBORS, average_neighbors
from pretrain.rl.mean_action_loss import with_mean_action_loss
from pretrain.rl.rollout import Rollout

STEPS = 6


def rollout_of(mean: Tensor, terminated: Tensor, truncated: Tensor) -> Rollout:
    nothing = torch.zeros(mean.shape[:2])
    return Rollout(
        {}, {}, mean, mean, nothing, nothing, terminated, truncated, terminated | truncated, {}
    )


def cost(mean: Tensor, rollout: Rollout) -> Tensor:
    """The loss of mean actions (T, N, A) in the steps of a rollout."""
    batch = {name: x.flatten(0, 1) for name, x in average_neighbors(rollout).items()}
    loss = with_mean_action_loss(lambda mean, batch: (mean.new_zeros(()), {}), NEIGHBORS, 2.0)
    return loss(mean.flatten(0, 1), batch)[0]


def no_ends() -> Tensor:
    return torch.zeros(STEPS, 2, dtype=torch.bool)


def test_smoothing_loss_of_a_linear_change_is_zero():
    mean = torch.arange(float(STEPS))[:, None, None] * torch.ones(1, 2, 3)
    assert cost(mean, rollout_of(mean, no_ends(), no_ends())) == 0


def test_smoothing_loss_is_the_squared_distance_to_the_neighbors():
    mean = torch.tensor([1.0, -1.0]).repeat(STEPS // 2)[:, None, None] * torch.ones(1, 2, 3)
    # each of the inner steps is 2 from its neighbors, in each of 3 actions
    expected = 2.0 * 3 * 2.0**2 * (STEPS - 2) / STEPS
    torch.testing.assert_close(
        cost(mean, rollout_of(mean, no_ends(), no_ends())), torch.tensor(expected)
    )


def test_the_gradient_moves_a_rough_action_towards_its_neighbors():
    mean = torch.zeros(STEPS, 2, 1)
    mean[3, 1] = 1.0
    moved = mean.clone().requires_grad_()
    cost(moved, rollout_of(mean, no_ends(), no_ends())).backward()
    assert moved.grad is not None
    # neighbors are those of the rollout, so that a rough action pulls at both of them as well
    assert moved.grad[3, 1, 0] > 0
    assert (moved.grad[[2, 4], 1, 0] < 0).all()
    assert (moved.grad[:, 0] == 0).all()


def test_no_neighbor_is_taken_from_another_segment():
    terminated = no_ends()
    truncated = no_ends()
    terminated[2, 0] = True
    truncated[3, 1] = True
    has = average_neighbors(rollout_of(torch.zeros(STEPS, 2, 1), terminated, truncated))
    assert has["has_neighbors"][:, 0].tolist() == [0, 1, 0, 0, 1, 0]
    assert has["has_neighbors"][:, 1].tolist() == [0, 1, 1, 0, 0, 0]
