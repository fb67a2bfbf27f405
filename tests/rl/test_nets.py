"""Layers that multiply in bfloat16: near while they learn, exact once they are evaluated, and the same for act and learn."""

from __future__ import annotations

import torch

from pretrain.rl.nets import GaussianPolicy, Inputs, mlp, standard


def policy(mixed: bool) -> GaussianPolicy:
    rng = torch.Generator().manual_seed(0)
    made = GaussianPolicy(Inputs({"obs": standard(8)}), mlp([8, 64, 64, 4], rng=rng), 0.1)
    made.body.mixed = mixed
    return made


def test_mixed_layers_are_near_the_exact_ones_and_float32_outside(rng):
    obs = {"obs": torch.randn(256, 8, generator=rng)}
    exact, mixed = policy(False)(obs), policy(True)(obs)
    assert mixed.dtype == torch.float32
    assert 0 < (exact - mixed).abs().max() < 0.05
    (mixed.sum()).backward()
    assert all(p.dtype == torch.float32 for p in policy(True).parameters())


def test_evaluation_is_exact(rng):
    obs = {"obs": torch.randn(256, 8, generator=rng)}
    assert torch.equal(policy(True).eval()(obs), policy(False)(obs))


def test_a_policy_learns_from_the_probabilities_it_acted_by(rng):
    acting, obs = policy(True), {"obs": torch.randn(256, 8, generator=rng)}
    action, logp = acting.act(obs, torch.randn(256, 4, generator=rng))
    again = acting.logp(acting(obs), action)
    torch.testing.assert_close(again, logp, atol=1e-4, rtol=0)
