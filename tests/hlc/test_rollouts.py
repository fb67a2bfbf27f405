"""Measures of episodes against values by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from hlc.baselines import best_fixed
from hlc.config import CONFIG_MODEL, EvalConfig
from hlc.evaluate import table, task_card
from hlc.parent import Parent
from hlc.rollouts import (
    Episodes,
    RandomSkills,
    distance_curve,
    falls,
    final_distances,
    returns,
    successes,
    survival,
    times_to_goal,
)


def by_hand() -> Episodes:
    """Two worlds over four steps: the first changes goal after step 2, the second falls in step
    3."""
    return Episodes(
        reward=torch.tensor([[1.0, 0.5], [0.5, 0.5], [0.25, 0.0], [0.25, 0.0]]),
        distance=torch.tensor([[0.1, 0.4], [0.2, 0.6], [0.3, 9.0], [0.4, 9.0]]),
        success=torch.tensor([[False, False], [True, True], [True, False], [False, False]]),
        since=torch.tensor([[1, 1], [2, 2], [1, 3], [2, 4]]),
        last=torch.tensor([[False, False], [True, False], [False, False], [False, True]]),
        standing=torch.tensor([[True, True], [True, True], [True, False], [True, False]]),
    )


def test_measures_by_hand() -> None:
    played = by_hand()
    torch.testing.assert_close(returns(played, 2), torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(survival(played), torch.tensor([1.0, 0.5]))
    torch.testing.assert_close(
        final_distances(played), torch.tensor([0.2])
    )  # a character on the ground is not counted
    curve, rows = distance_curve(played)
    torch.testing.assert_close(curve, torch.tensor([0.8 / 3, 1.2 / 3]))
    assert rows.tolist() == [3, 3]


def test_success_uses_last_step_and_time_to_goal_the_first() -> None:
    played = by_hand()
    assert successes(played).tolist() == [1.0, 0.0]  # the second world lies when its goal ends
    torch.testing.assert_close(times_to_goal(played), torch.tensor([2.0, 2.0, 1.0]) / 30)
    fallen, minutes = falls(played)
    assert fallen == 1
    assert round(minutes * 60 * 30) == 6


def test_a_task_without_a_distance_has_no_curve() -> None:
    played = replace(by_hand(), distance=torch.full((4, 2), torch.nan))
    assert final_distances(played).tolist() == []
    curve, rows = distance_curve(played)
    assert (curve.tolist(), rows.tolist()) == ([], [])


def test_random_skills_are_unit_and_held_for_the_given_steps() -> None:
    player = RandomSkills(16, 8, 3, 3, torch.Generator().manual_seed(0))
    nothing = np.zeros((16, 1), np.float32)
    z = [player(nothing, nothing).copy() for _ in range(6)]
    np.testing.assert_allclose(np.linalg.norm(z[0], axis=-1), 1, atol=1e-6)
    assert all(np.array_equal(z[0], z[i]) for i in (1, 2))
    assert all(np.array_equal(z[3], z[i]) for i in (4, 5))
    assert (z[2] != z[3]).any(-1).all()


def test_players_are_compared_on_the_same_seeds(parent: Parent) -> None:
    """A player that equals a baseline has exactly the measures of the baseline."""
    cfg = CONFIG_MODEL(threads=1, episode_length=2.0, eval=EvalConfig(episodes=8))
    player = RandomSkills(
        8, parent.skills.latent_dim, 1, 1, torch.Generator().manual_seed(cfg.eval.seed + 2)
    )
    card = task_card(player, parent, cfg)
    assert card["detail"]["random"]["redrawn"] == card["detail"]["controller"]
    assert card["return_random"] == max(
        card["detail"]["random"][name]["return"]["mean"] for name in ("redrawn", "held")
    )


def test_best_fixed_skill_is_the_clip_with_the_highest_return(puppet_skills: Parent) -> None:
    """The first number of z is half the puppet's speed in m/s: one clip of three walks ahead."""
    arm = (1 - 0.45**2) ** 0.5
    rows = {"back": (-0.45, 0.0, arm), "ahead": (0.45, 0.0, arm), "rest": (0.0, 0.0, 1.0)}
    clips = {name: (*row, *[0.0] * 5) for name, row in rows.items()}
    cfg = CONFIG_MODEL(
        task="speed", engine="puppet", threads=1, episode_length=1.0, eval=EvalConfig(episodes=4)
    )
    found = best_fixed(with_clips(puppet_skills, clips), cfg, 4)
    assert found is not None
    name, decide = found
    assert name == "ahead"
    nothing = np.zeros((4, 1), np.float32)
    np.testing.assert_allclose(decide(nothing, nothing), np.tile(clips[name], (4, 1)), rtol=1e-6)
    assert best_fixed(with_clips(puppet_skills, {}), cfg, 4) is None


def with_clips(parent: Parent, clips: dict[str, tuple[float, ...]]) -> Parent:
    """`parent`, as if it had been trained on `clips`."""
    manifest = parent.version.manifest
    latent = manifest.latent.model_copy(update={"clips": clips})
    version = replace(parent.version, manifest=manifest.model_copy(update={"latent": latent}))
    return replace(parent, skills=replace(parent.skills, version=version))


def test_planner_episodes_setting_adds_planner_results_to_card(puppet_skills: Parent) -> None:
    cfg = CONFIG_MODEL(
        task="speed", engine="puppet", threads=1, episode_length=1.0, eval=EvalConfig(episodes=4)
    )
    player = RandomSkills(
        4, puppet_skills.skills.latent_dim, 1, 1, torch.Generator().manual_seed(0)
    )
    assert "return_planner" not in task_card(player, puppet_skills, cfg)
    card = task_card(player, puppet_skills, cfg, planner_episodes=2)
    assert card["detail"]["planner"]["return"]["n"] == 2
    assert card["return_planner"] >= card["return_random"]
    assert card["final_distance"] is None  # no goal ends within the second
    assert card["distance_unit"] == "m/s"
    for heading in ("controller", "random (", "fixed (", "planner", "success", "falls a minute"):
        assert heading in table(card)
