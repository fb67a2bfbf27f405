"""The schedule of the assistance, and the weights of the start clips."""

from __future__ import annotations

import torch

from pretrain.assist.curriculum import AssistSchedule, Curriculum, NearLatents


def test_strength_decays_on_long_episodes_and_grows_on_short():
    rule = AssistSchedule(start=0.5, steps=100, rate=0.1)
    feet = torch.full((4,), -1.0)  # have no effect without a minimum
    strength = rule.next(
        torch.tensor([0.5, 0.5, 0.5, 1.0]), torch.tensor([150.0, 80.0, 30.0, 30.0]), feet
    )
    torch.testing.assert_close(strength, torch.tensor([0.45, 0.5, 0.55, 1.0]))


def test_strength_at_zero_stays_zero():
    rule = AssistSchedule(start=0.5, steps=100, rate=0.1)
    following = rule.next(torch.tensor([0.009, 0.0]), torch.tensor([10.0, 10.0]), torch.zeros(2))
    assert following.tolist() == [0.0, 0.0]


def test_strength_is_held_while_the_feet_are_not_lifted_as_in_the_clip():
    rule = AssistSchedule(start=0.5, steps=100, rate=0.1, min_foot_match=0.3)
    lengths = torch.tensor([150.0, 150.0, 30.0])
    strength = rule.next(torch.full((3,), 0.5), lengths, torch.tensor([0.4, 0.2, 0.2]))
    torch.testing.assert_close(strength, torch.tensor([0.45, 0.5, 0.55]))


def test_foot_match_is_the_mean_over_recorded_steps_of_a_clip():
    curriculum = begun([0, 0])
    assert curriculum.foot_match.tolist() == [0.0, 0.0]
    curriculum.record_foot_match(torch.tensor([0, 0, 1]), torch.tensor([1.0, 0.5, 0.25]))
    assert curriculum.foot_match.tolist() == [0.75, 0.25]


def begun(falls: list[int], focus: float = 3.0) -> Curriculum:
    """Two clips, 100 steps each, in which so many worlds fell."""
    made = Curriculum(
        torch.tensor([0.5, 0.5]),
        episode_length=50,
        schedule=AssistSchedule(0.5, 30, 0.1),
        focus=focus,
    )
    for clip, count in enumerate(falls):
        made.record(torch.full((100,), clip), torch.arange(100) < count)
    return made


def test_episode_lengths_are_recorded_per_clip():
    assert begun([2, 10]).steps_between_failures.tolist() == [50.0, 10.0]


def test_assist_strength_follows_each_clips_episode_length():
    curriculum = begun([2, 10])
    curriculum.step_schedule()
    torch.testing.assert_close(curriculum.assist_strength, torch.tensor([0.45, 0.55]))


def test_weights_follow_the_falls_within_bounds():
    assert begun([0, 0]).weights.tolist() == [0.5, 0.5]
    torch.testing.assert_close(begun([2, 4]).weights, torch.tensor([1 / 3, 2 / 3]))
    torch.testing.assert_close(
        begun([2, 100]).weights, torch.tensor([0.25, 0.75])
    )  # 50 times as short, 3 times as often
    assert begun([2, 100], focus=1.0).weights.tolist() == [0.5, 0.5]


def test_an_assisted_clip_keeps_its_weight_however_long_its_episodes():
    """Its long episodes may be due to the assistance."""
    curriculum = begun([0, 2])  # no fall, and one in 50 steps; an episode has 50
    torch.testing.assert_close(curriculum.weights, torch.tensor([0.5, 0.5]))
    curriculum.assist_strength[:] = 0
    torch.testing.assert_close(curriculum.weights, torch.tensor([0.25, 0.75]))


def test_only_included_clips_get_a_higher_start_weight():
    curriculum = begun([2, 100])
    curriculum.included = torch.tensor([True, False])
    torch.testing.assert_close(curriculum.weights, torch.tensor([0.5, 0.5]))


def test_old_falls_lose_their_weight():
    curriculum = begun([0, 50])
    for _ in range(60):
        curriculum.step_schedule()
        curriculum.record(torch.arange(2).repeat(50), torch.zeros(100, dtype=torch.bool))
    assert curriculum.steps_between_failures.min() > 500


def test_snapshot_restores_the_state():
    first = begun([2, 10])
    second = begun([50, 0])
    first.step_schedule()
    second.restore(first.snapshot())
    assert torch.equal(first.assist_strength, second.assist_strength)
    assert torch.equal(first.weights, second.weights)


def test_latents_stay_near_a_clip_until_it_is_mastered():
    curriculum = begun([2, 10])
    curriculum.near = NearLatents(prob=0.8, steps=30, after=0.5)
    torch.testing.assert_close(curriculum.near_probs(), torch.tensor([0.8, 0.8]))
    curriculum.assist_strength[:] = 0
    torch.testing.assert_close(curriculum.near_probs(), torch.tensor([0.4, 0.8]))


def test_only_included_clips_have_a_strength():
    schedule = AssistSchedule(start=0.5, steps=30, rate=0.1)
    some = torch.tensor([True, False])
    curriculum = Curriculum(
        torch.tensor([0.5, 0.5]), episode_length=50, schedule=schedule, included=some
    )
    assert curriculum.assist_strength.tolist() == [0.5, 0.0]


def test_progress_rises_as_clips_lose_their_assistance_and_last():
    curriculum = begun([0, 0])
    curriculum.episode_length = 300
    curriculum.assist_strength.fill_(1.0)
    for _ in range(300):
        worlds = torch.tensor([0, 1]).repeat(100)
        curriculum.record(worlds, torch.zeros(200, dtype=torch.bool))
        curriculum.assist_strength[0] = 0.0
        curriculum.assist_strength[1] = 1.0
        curriculum.step_schedule()
    assert 0.45 < float(curriculum.progress) < 0.6  # one of two clips


def test_progress_is_0_if_all_episodes_fall_at_once():
    curriculum = begun([100, 100])
    curriculum.assist_strength.zero_()
    curriculum.step_schedule()
    assert float(curriculum.progress) < 0.001
