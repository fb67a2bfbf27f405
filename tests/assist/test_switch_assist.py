"""Switch assistance: in force after a change of velocity, and weaker as switches succeed."""

from __future__ import annotations

import pytest
import torch

from pretrain.assist.switch_assist import SwitchAssist
from tests.assist.assistances import PERIOD, make_switches

CLIPS = torch.tensor([0, 1, 1, 2])
SOURCES = torch.tensor([1, 0, 2, 1])
YES = torch.ones(4, dtype=torch.bool)
NO = torch.zeros(4, dtype=torch.bool)


def begin() -> SwitchAssist:
    """Four worlds that have just switched from `SOURCES` to `CLIPS`."""
    switches = make_switches(3, 4, start=0.8)
    switches.change_skill(YES, SOURCES, YES)
    return switches


def test_no_world_begins_in_a_switch():
    assert not make_switches(3, 4, start=0.8).strengths(CLIPS).any()


def test_assistance_is_full_for_half_of_a_switch_and_gone_at_its_end():
    switches = begin()
    seen = []
    for _ in range(PERIOD + 1):
        seen.append(float(switches.strengths(CLIPS)[0]))
        switches.record(CLIPS, NO, NO)
    assert seen[: PERIOD // 2 + 1] == pytest.approx([0.8] * (PERIOD // 2 + 1))
    assert seen == sorted(seen, reverse=True)
    assert seen[PERIOD] == 0


@pytest.mark.parametrize(
    ("changed", "away", "begins"), [(YES, NO, False), (NO, YES, False), (YES, YES, True)]
)
def test_a_switch_needs_another_clip_and_another_velocity(changed, away, begins):
    switches = make_switches(3, 4, start=0.8)
    switches.change_skill(changed, SOURCES, away)
    assert bool(switches.strengths(CLIPS).any()) == begins


def test_another_clip_of_the_same_velocity_ends_a_switch():
    switches = begin()
    switches.change_skill(YES, SOURCES, NO)
    assert not switches.strengths(CLIPS).any()


def test_an_episode_that_begins_away_from_its_skill_begins_with_a_switch():
    switches = make_switches(3, 4, start=0.8)
    ids = torch.tensor([1, 3])
    switches.start(ids, SOURCES[ids], torch.tensor([True, False]))
    assert (switches.strengths(CLIPS) > 0).tolist() == [False, True, False, False]


def test_a_switch_counts_once_by_where_it_ends():
    switches = begin()
    arrived = torch.tensor([True, True, False, True])
    for _ in range(3 * PERIOD):
        switches.record(CLIPS, NO, arrived)
    assert switches.switches.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert switches.success.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]


def test_a_failure_ends_a_switch_and_is_no_success():
    switches = begin()
    for step in range(PERIOD):
        switches.record(CLIPS, torch.tensor([step == 2, False, False, False]), YES)
    assert switches.success[SOURCES, CLIPS].tolist() == [0, 1, 1, 1]


def test_a_switch_that_is_cut_short_does_not_count():
    switches = begin()
    switches.record(CLIPS, NO, YES)
    switches.change_skill(YES, SOURCES, NO)
    for _ in range(PERIOD):
        switches.record(CLIPS, NO, YES)
    assert not switches.switches.any()


def with_success(share: list[float]) -> SwitchAssist:
    """A hundred switches from clip 0 to each of three clips, and none from the others."""
    switches = begin()
    switches.switches[0] = 100.0
    switches.successes[0] = 100 * torch.tensor(share)
    return switches


def test_assistance_falls_where_switches_succeed_and_grows_elsewhere():
    switches = with_success([0.5, 0.2, 0.1])
    switches.step_schedule(torch.ones(3, dtype=torch.bool))
    assert switches.strength[0].tolist() == pytest.approx([0.4, 0.8, 1.0])


def test_easy_switches_to_a_clip_do_not_end_the_assistance_of_hard_ones():
    switches = with_success([0.9, 0.9, 0.9])
    switches.switches[1] = 100.0
    before = switches.strength[1].clone()
    switches.step_schedule(torch.ones(3, dtype=torch.bool))
    assert (switches.strength[0] < before).all()
    assert (switches.strength[1] >= before).all()


def test_assistance_stays_where_there_were_too_few_switches_to_judge():
    switches = with_success([0.9, 0.9, 0.9])
    before = switches.strength[1:].clone()
    switches.step_schedule(torch.ones(3, dtype=torch.bool))
    assert torch.equal(switches.strength[1:], before)


def test_assistance_does_not_weaken_while_the_clip_itself_is_assisted():
    switches = with_success([0.9, 0.9, 0.1])
    switches.step_schedule(torch.tensor([True, False, False]))
    assert switches.strength[0].tolist() == pytest.approx([0.4, 0.8, 1.0])


def test_assistance_at_zero_stays_zero():
    switches = with_success([0.0, 0.0, 0.0])
    switches.strength[:] = 0.009
    for _ in range(2):
        switches.step_schedule(torch.ones(3, dtype=torch.bool))
        assert not switches.strength.any()


def test_only_assisted_clips_have_strength():
    switches = SwitchAssist(torch.tensor([0.8, 0.0, 0.8]), 4, PERIOD, rate=0.1)
    switches.change_skill(YES, SOURCES, YES)
    assert (switches.strengths(CLIPS) > 0).tolist() == [True, False, False, True]


def test_restored_switches_continue_as_the_original():
    original = with_success([0.9, 0.9, 0.9])
    original.record(CLIPS, NO, YES)
    copy = make_switches(3, 4, start=0.8)
    copy.restore(original.snapshot())
    for switches in (original, copy):
        for _ in range(PERIOD):
            switches.record(CLIPS, NO, YES)
        switches.step_schedule(torch.ones(3, dtype=torch.bool))
    assert torch.equal(original.strength, copy.strength)
    assert original.strength[0, 0] < 0.8
    assert torch.equal(original.switches, copy.switches)
