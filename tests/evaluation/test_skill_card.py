"""The skill card of libraries that come with the project, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from pretrain.evaluation.caveats import caveats
from pretrain.evaluation.conditions import Conditions
from pretrain.evaluation.setup import Setup
from pretrain.evaluation.skill_card import evaluate, quick_card, skill_card
from pretrain.evaluation.table import table, value_at
from pretrain.training_data import load_published_data
from skills_store.runtime.library import SkillLibrary
from skills_store.store import BUNDLED, Store
from tests.evaluation import playback

WINDOW = 3
FEW = Conditions(episodes=16, seconds=2.0, threads=1)
HEADLINE = {"falls_per_minute", "time_on_clip", "switch_success"}


def bundled(ref: str) -> SkillLibrary:
    return SkillLibrary.open(Store(BUNDLED), ref)


@pytest.fixture(scope="module")
def played() -> dict:
    """The card of a library that plays its clips."""
    torch.set_num_threads(1)
    data = playback.training_data()
    with pytest.MonkeyPatch.context() as patch:
        playback.playback(patch, data)
        conditions = Conditions(episodes=64, engine=playback.ENGINE)
        return skill_card(playback.conditioned(data), data, conditions)


def test_playing_the_clips_is_perfect_by_every_measure(played):
    assert value_at(played, "falls_per_minute.own") == 0
    assert value_at(played, "time_on_clip.least") == 1
    assert value_at(played, "switch_success.mean") == 1
    assert value_at(played, "steering.stands") is True
    assert value_at(played, "survival") == 1
    assert min(played["coverage_per_clip"].values()) == 1
    assert max(played["pose_error_m"].values()) < 1e-5
    slide = played["foot_slide_m_s"]
    assert slide["stand"] == 0
    assert slide["walk"] > playback.SPEED / 2  # the legs of the made-up walk do not step
    assert slide["turn"] is None  # its feet are above the ground


def test_a_card_is_json_and_every_mean_has_n_and_an_interval(played):
    assert json.loads(json.dumps(played, allow_nan=False)) == played
    for path in (
        "falls_per_minute.own",
        "falls_per_minute.random",
        "time_on_clip.mean",
        "time_on_clip.least",
        "switch_success",
        "information.nats",
        "information.distinguishable",
        "steering.forward_speed.most",
        "steering.seconds_to_90_percent",
        "robustness.push_500_newton",
        "survival",
        "jerk",
    ):
        found = value_at(played["detail"], path)
        assert found["n"] > 0, path
        assert found["interval"][0] <= found["mean"] <= found["interval"][1], path


def test_a_quick_card_has_the_first_three_measures_alone(monkeypatch):
    data = playback.training_data()
    playback.playback(monkeypatch, data)
    monkeypatch.setattr("pretrain.evaluation.skill_card.QUICK", Conditions(16, engine="playback"))
    card = quick_card(playback.conditioned(data), data, 0)
    assert set(card) == {*HEADLINE, "detail", "caveats"}
    assert "survival" not in table({"quick": card})
    assert "time on clip" in table({"quick": card})


def test_evaluation_on_other_clips_adds_a_caveat():
    """Jerk is over the clips' own, of which the smoothed running clip has less."""
    skills = bundled("humanoid@1")
    own = evaluate(skills, FEW)
    other = evaluate(skills, FEW, "locomotion_smooth")
    caveat = "measured by the clips of 'locomotion_smooth', whatever it learned from"
    assert other["caveats"][0] == caveat
    assert other["jerk"] > 1.1 * own["jerk"]
    assert other["cost"] == own["cost"] == skills.version.manifest.card["cost"]


def test_own_z_is_the_published_latent_or_the_encoded_clip(every_clip):
    skills = bundled("humanoid@1")
    published = skills.version.manifest.latent.clips
    setup = Setup(skills, every_clip, FEW)
    names = every_clip.library.names
    assert "backflip" not in published
    torch.testing.assert_close(
        setup.own_z[names.index("run")], torch.tensor(published["run"], dtype=torch.float32)
    )
    torch.testing.assert_close(setup.own_z.norm(dim=-1), torch.ones(len(names)))
    nearest = setup.nearest_clip(setup.own_z).tolist()
    itself = sum(clip == number for number, clip in enumerate(nearest))
    assert itself >= len(names) - 4  # a few share their z with their mirror image


def test_a_library_is_measured_on_the_body_that_it_carries(training_data):
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    heavier = manifest.character.mjcf.replace('density="2226"', 'density="3000"')
    assert heavier != manifest.character.mjcf
    body = manifest.character.model_copy(update={"mjcf": heavier})
    other = manifest.model_copy(update={"character": body})
    assert load_published_data(other, WINDOW).character.mjcf == heavier
    assert (
        load_published_data(manifest, WINDOW).character.skeleton == training_data.character.skeleton
    )


def test_evaluation_refuses_a_different_control_dt():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    body = manifest.character.model_copy(update={"control_dt": 1 / 60})
    faster = manifest.model_copy(update={"character": body})
    message = r"'humanoid': control_dt is 0\.0166667 s, expected 0\.0333333"
    with pytest.raises(ValueError, match=message):
        load_published_data(faster, WINDOW)


def test_evaluation_refuses_lineage_without_motions():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    lineage = manifest.lineage.model_copy(update={"config": {}})
    without_motions = manifest.model_copy(update={"lineage": lineage})
    with pytest.raises(ValueError, match="humanoid's lineage names no 'motions'"):
        load_published_data(without_motions, WINDOW)


def test_evaluation_refuses_clips_that_differ_from_lineage():
    manifest = Store(BUNDLED).resolve("humanoid@1").manifest
    first, *rest = manifest.lineage.clips
    renamed = first.model_copy(update={"name": "jump"})
    edited = manifest.lineage.model_copy(update={"clips": (renamed, *rest)})
    message = f"learned from other clips .*: jump, {first.name} changed"
    with pytest.raises(ValueError, match=message):
        load_published_data(manifest.model_copy(update={"lineage": edited}), WINDOW)


def test_dataset_digest_depends_on_clips_and_weights(training_data):
    dataset = training_data.dataset
    other = replace(dataset.clips[0], digest="sha256:" + "0" * 64)
    edited = replace(dataset, clips=(other, *dataset.clips[1:]))
    weighed = replace(dataset, weights=(2 * dataset.weights[0], *dataset.weights[1:]))
    assert len({dataset.digest, edited.digest, weighed.digest}) == 3
    assert replace(dataset).digest == dataset.digest


def test_caveats_list_falling_unperformed_and_alike_skills(played, training_data):
    clips = training_data.dataset
    assert not any("falls" in line for line in caveats(played, clips))
    thin = {
        **played,
        "falls_per_minute": {**played["falls_per_minute"], "per_clip": {"walk": 4.8, "run": 0.3}},
        "time_on_clip": {**played["time_on_clip"], "per_clip": {"walk": 0.12, "run": 0.9}},
        "information": {**played["information"], "distinguishable": 1.4},
    }
    lines = caveats(thin, clips)
    assert "walk falls 4.8 times a minute under its own z" in lines
    assert "walk is performed 12% of the time under its own z" in lines
    assert any("only 1.4 can be told apart" in line for line in lines)
    assert not any(line.startswith(("run falls", "run is performed")) for line in lines)
    one = caveats(played, replace(clips, clips=clips.clips[:1]))
    assert one[0].startswith("1 clip(s), 1.3 s")
    assert "64 episodes, fewer than 1000" in one
