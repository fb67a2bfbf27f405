"""What is done beside the loop is what would be done in it."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

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

    return net, Learner(name, ("x",), loss, torch.optim.Adam(net.parameters(), 1e-2), 3, 32)


def test_learners_beside_the_loop_learn_what_they_learn_in_it():
    def learnt(background: Background | None) -> tuple[Scalars, list[torch.Tensor]]:
        rng = torch.Generator().manual_seed(0)
        (one, first), (other, second) = fitting("one", rng), fitting("other", rng)
        batch = {"x": torch.randn(256, 3, generator=rng)}
        if background is None:
            seeded = [(first, torch.Generator().manual_seed(5)), (second, torch.Generator().manual_seed(6))]
            scalars = {key: x for learner, own in seeded for key, x in learner.fit(batch, own).items()}
        else:
            background.begin([first, second], batch, [5, 6])
            scalars = background.report()
            assert background.report() == {}, "what is reported once is not reported again"
        return scalars, [p.detach() for net in (one, other) for p in net.parameters()]

    (alone, expected), (together, found) = learnt(None), learnt(Background())
    assert alone == together
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_who_waits_for_answers_takes_those_upon_itself_that_nobody_has_begun():
    begun, quick_is_done = threading.Event(), threading.Event()
    found: dict[str, str] = {}

    def slow() -> int:
        begun.set()
        assert quick_is_done.wait(30), "nobody else has done it"
        found["slow"] = threading.current_thread().name
        return 1

    def quick() -> int:
        found["quick"] = threading.current_thread().name
        quick_is_done.set()
        return 2

    background = Background()
    asked = [background.ask(slow), background.ask(quick)]
    assert begun.wait(30)
    assert background.answers(asked) == [1, 2]
    assert found["quick"] == threading.current_thread().name != found["slow"]


def test_who_asks_is_answered_by_what_has_learned(rng):
    background, (net, learner) = Background(), fitting("one", rng)
    batch = {"x": torch.randn(20_000, 3, generator=rng)}
    before = net.weight.detach().clone()
    background.begin([learner], batch, [0])
    asked = [background.ask(lambda: net.weight.detach().clone()) for _ in range(3)]
    answers = background.answers(asked)
    assert all(torch.equal(answer, net.weight) for answer in answers)
    assert not torch.equal(before, net.weight)


def test_a_question_that_fails_fails_where_its_answer_is_waited_for():
    def impossible() -> torch.Tensor:
        raise ValueError("no such reward")

    background = Background()
    asked = background.ask(impossible)
    with pytest.raises(ValueError, match="no such reward"):
        background.answers([asked])


def test_what_is_learned_before_a_report_is_kept_for_it(rng):
    background = Background()
    background.begin([fitting("one", rng)[1]], {"x": torch.ones(64, 3)}, [0])
    background.finish()
    assert set(background.learned) == {"one/loss", "one/skipped", "one/lr"}
    assert background.report()["one/loss"] > 0


def test_what_goes_wrong_beside_the_loop_is_raised_where_it_is_waited_for(rng):
    background = Background()
    background.begin([fitting("bad", rng, wrong=torch.nan)[1]], {"x": torch.ones(64, 3)}, [0])
    with pytest.raises(Diverged, match="bad: 6 of its 6 gradient steps were not finite"):
        background.finish()
