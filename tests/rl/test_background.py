"""Background fits give the results of inline ones."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from pretrain.rl.adam import Adam
from pretrain.rl.background import Background
from pretrain.rl.learner import Diverged, Learner, Scalars
from pretrain.rl.rollout import Batch


def fitting(name: str, rng: torch.Generator, wrong: float = 0.0) -> tuple[nn.Linear, Learner]:
    """A net, and a learner that has it double its input, with noise of its own."""
    net = nn.Linear(3, 3, bias=False)
    net.weight.data.copy_(torch.randn(3, 3, generator=rng))

    def loss(batch: Batch, rng: torch.Generator):
        aim = 2 * batch["x"] + 0.1 * torch.randn(batch["x"].shape, generator=rng) + wrong
        return (net(batch["x"]) - aim).square().mean(), {}

    return net, Learner(name, ("x",), loss, Adam(net.parameters(), 1e-2), 3, 32)


def test_background_fit_matches_inline_fit():
    def learn(background: Background | None) -> tuple[Scalars, list[torch.Tensor]]:
        rng = torch.Generator().manual_seed(0)
        one, first = fitting("one", rng)
        other, second = fitting("other", rng)
        batch = {"x": torch.randn(256, 3, generator=rng)}
        if background is None:
            scalars = first.fit(batch, torch.Generator().manual_seed(5))
            scalars |= second.fit(batch, torch.Generator().manual_seed(6))
        else:
            background.start_fits([first, second], batch, [5, 6])
            scalars = background.take_metrics()
            assert background.take_metrics() == {}, "metrics are reported once"
        return scalars, [p.detach() for net in (one, other) for p in net.parameters()]

    alone, expected = learn(None)
    together, found = learn(Background())
    assert alone == together
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_the_waiting_thread_runs_the_calls_that_have_not_begun():
    begun = threading.Event()
    quick_is_done = threading.Event()
    found: dict[str, str] = {}

    def slow() -> int:
        begun.set()
        assert quick_is_done.wait(30), "no other thread has run it"
        found["slow"] = threading.current_thread().name
        return 1

    def quick() -> int:
        found["quick"] = threading.current_thread().name
        quick_is_done.set()
        return 2

    background = Background()
    pending = [background.submit(slow), background.submit(quick)]
    assert begun.wait(30)
    assert background.results(pending) == [1, 2]
    assert found["quick"] == threading.current_thread().name != found["slow"]


def test_a_submitted_call_reads_the_fitted_network(rng):
    background = Background()
    net, learner = fitting("one", rng)
    batch = {"x": torch.randn(20_000, 3, generator=rng)}
    before = net.weight.detach().clone()
    background.start_fits([learner], batch, [0])
    pending = [background.submit(lambda: net.weight.detach().clone()) for _ in range(3)]
    weights = background.results(pending)
    assert all(torch.equal(weight, net.weight) for weight in weights)
    assert not torch.equal(before, net.weight)


def test_a_call_that_fails_raises_where_its_result_is_read():
    def impossible() -> torch.Tensor:
        raise ValueError("no such reward")

    background = Background()
    pending = background.submit(impossible)
    with pytest.raises(ValueError, match="no such reward"):
        background.results([pending])


def test_metrics_of_finished_fits_are_kept_until_the_report(rng):
    background = Background()
    background.start_fits([fitting("one", rng)[1]], {"x": torch.ones(64, 3)}, [0])
    background.finish_fits()
    assert set(background.learned) == {"one/loss", "one/skipped", "one/lr"}
    assert background.take_metrics()["one/loss"] > 0


def test_a_divergence_in_the_background_is_raised_by_finish(rng):
    background = Background()
    background.start_fits([fitting("bad", rng, wrong=torch.nan)[1]], {"x": torch.ones(64, 3)}, [0])
    with pytest.raises(Diverged, match="bad: 6 of its 6 gradient steps were not finite"):
        background.finish_fits()
