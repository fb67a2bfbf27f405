"""Advantage-weighted regression: its optimum, and the bound on weights."""

from __future__ import annotations

import math

import pytest
import torch

from pretrain.rl.awr import weighted_regression
from pretrain.rl.nets import GaussianPolicy, Inputs
from pretrain.rl.rollout import Batch

ACTIONS = torch.tensor([[0.0], [1.0], [3.0]])


@pytest.fixture
def policy() -> GaussianPolicy:
    return GaussianPolicy(Inputs({"x": torch.nn.Identity()}), torch.nn.Sequential(), std=0.5)


def batch(policy: GaussianPolicy, advantage: list[float]) -> Batch:
    """The actions of one state, as if their mean had been 0."""
    logp = policy.logp(torch.zeros(3, 1), ACTIONS)
    return {"action": ACTIONS, "advantage": torch.tensor(advantage), "logp": logp}


def slope_at(policy: GaussianPolicy, mean: float, rows: Batch, **settings: float) -> float:
    """Derivative of the loss with respect to the mean action of the state."""
    given = {"temperature": 1.0, "max_weight": 20.0, "action_bound": 9.0, **settings}
    surrogate = weighted_regression(policy, **given, action_bound_weight=1.0)
    at = torch.tensor(mean, requires_grad=True)
    loss, _ = surrogate(at.expand(3, 1), rows)
    loss.backward()
    assert at.grad is not None
    return float(at.grad)


def test_optimum_is_the_mean_of_actions_weighted_by_their_advantages(
    policy: GaussianPolicy,
) -> None:
    weights = torch.tensor([1.0, 2.0, 5.0])
    best = float((weights * ACTIONS[:, 0]).sum() / weights.sum())
    rows = batch(policy, [math.log(2) / 2 * x for x in (0.0, 1.0, math.log2(5))])
    assert slope_at(policy, best, rows, temperature=0.5) == pytest.approx(0, abs=1e-5)
    assert slope_at(policy, best - 0.1, rows, temperature=0.5) < -0.1


def test_no_action_weighs_more_than_the_largest_weight(policy: GaussianPolicy) -> None:
    bounded = slope_at(policy, 0.0, batch(policy, [0.0, 0.0, math.log(4)]), max_weight=4.0)
    beyond = slope_at(policy, 0.0, batch(policy, [0.0, 0.0, 50.0]), max_weight=4.0)
    assert beyond == pytest.approx(bounded)


def test_mean_actions_beyond_the_bound_are_penalized(policy: GaussianPolicy) -> None:
    rows = batch(policy, [0.0, 0.0, 0.0])
    inside = slope_at(policy, 2.0, rows, action_bound=2.0)
    assert slope_at(policy, 2.0, rows, action_bound=1.5) == pytest.approx(inside + 1.0)


def test_kl_divergence_is_0_for_the_policy_that_acted(policy: GaussianPolicy) -> None:
    surrogate = weighted_regression(policy, 1.0, 20.0, 9.0, 1.0)
    rows = batch(policy, [0.0, 1.0, -1.0])
    assert surrogate(torch.zeros(3, 1), rows)[1]["kl"] == 0
    assert surrogate(torch.full((3, 1), 0.1), rows)[1]["kl"] > 0
