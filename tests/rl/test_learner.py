"""A learner skips steps without finite gradients, and raises if most are skipped."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from pretrain.rl.adam import Adam
from pretrain.rl.learner import Diverged, Learner
from pretrain.rl.rollout import Batch


def poisoned(share: float) -> tuple[nn.Linear, Learner]:
    """A net, and a learner of which `share` of the rows have no finite gradient."""
    net = nn.Linear(1, 1)
    rows = iter(range(100))

    def loss(batch: Batch, rng: torch.Generator):
        return net(batch["x"]).mean() * torch.tensor(
            float("nan") if next(rows) % 10 < 10 * share else 1.0
        ), {}

    return net, Learner("bad", ("x",), loss, Adam(net.parameters(), 1e-3), 2, 2)


def test_nonfinite_gradient_steps_are_skipped_and_counted():
    net, learner = poisoned(0.4)
    before = net.weight.clone()
    assert learner.fit({"x": torch.ones(10, 1)}, torch.Generator())["bad/skipped"] == 4
    assert torch.isfinite(net.weight).all()
    assert not torch.equal(net.weight, before)


def test_half_of_the_steps_may_be_skipped():
    _, learner = poisoned(0.5)
    assert learner.fit({"x": torch.ones(10, 1)}, torch.Generator())["bad/skipped"] == 5


def test_learner_raises_diverged_if_most_steps_are_skipped():
    _, learner = poisoned(0.6)
    with pytest.raises(Diverged, match="bad: 6 of its 10 gradient steps were not finite"):
        learner.fit({"x": torch.ones(10, 1)}, torch.Generator())


def test_weights_are_unchanged_if_all_gradients_are_nonfinite():
    net, learner = poisoned(1.0)
    before = net.weight.clone()
    with pytest.raises(Diverged, match="bad: 10 of its 10 gradient steps were not finite"):
        learner.fit({"x": torch.ones(10, 1)}, torch.Generator())
    assert torch.equal(net.weight, before)


def test_only_minibatches_with_finite_gradients_are_observed():
    """So that no row that is not finite gets into a replay buffer or a running normalizer."""
    _, learner = poisoned(0.4)  # the first four of ten minibatches
    seen = []
    observing = replace(learner, observe=lambda batch: seen.append(batch["x"]))
    observing.fit({"x": torch.arange(10.0)[:, None]}, torch.Generator().manual_seed(0))
    order = torch.Generator().manual_seed(0)
    epochs = [torch.randperm(10, generator=order) for _ in range(2)]
    torch.testing.assert_close(torch.cat(seen)[:, 0], torch.cat(epochs).float()[8:])
