"""The parent loss: which steps have the parent's action, and where it moves the policy."""

from __future__ import annotations

import pytest
import torch
from torch import Generator, Tensor

from pretrain.ase.parent_skills import ParentSkills, read_parent_actions
from pretrain.rl.nets import GaussianPolicy, Inputs, make_fixed_normalizer, mlp
from pretrain.rl.rollout import Rollout

STEPS, WORLDS, OBS, ACTIONS = 3, 4, 5, 2


@pytest.fixture
def parent(rng: Generator) -> ParentSkills:
    normalizer = make_fixed_normalizer(torch.randn(50, OBS, generator=rng))
    body = mlp([OBS, 8, ACTIONS], rng=rng)
    policy = GaussianPolicy(Inputs({"obs": normalizer}), body, 0.1)
    return ParentSkills(policy, torch.tensor([True, False]))


def rollout_of(obs: Tensor, clip: Tensor, error: Tensor) -> Rollout:
    nothing = torch.zeros(STEPS, WORLDS)
    ends = nothing.bool()
    mean = torch.zeros(STEPS, WORLDS, ACTIONS)
    extras = {"z_clip": clip, "tracking_error": error}
    return Rollout({"obs": obs}, {}, mean, mean, nothing, nothing, ends, ends, ends, extras)


def test_only_steps_near_a_learned_clip_have_the_parents_action(
    parent: ParentSkills, rng: Generator
) -> None:
    obs = torch.randn(STEPS, WORLDS, OBS, generator=rng)
    clip = torch.tensor([0, 0, 1, 1]).expand(STEPS, -1)
    error = torch.tensor([0.5, 1.5, 0.5, 1.5]).expand(STEPS, -1)
    found = read_parent_actions(parent)(rollout_of(obs, clip, error))
    assert found["has_parent"].tolist() == [[1, 0, 0, 0]] * STEPS
    torch.testing.assert_close(found["parent_mean"][:, 0], parent.policy({"obs": obs[:, 0]}))
    assert not found["parent_mean"][:, 1:].any()
