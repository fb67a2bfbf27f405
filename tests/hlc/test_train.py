"""Training, resuming, exporting and publishing a controller, on a library with random weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from hlc.config import CONFIG_MODEL, ControllerPPOConfig, EvalConfig, HlcConfig
from hlc.evaluate import main as evaluate
from hlc.evaluate import trained_config
from hlc.export import ControllerGraph
from hlc.parent import Parent
from hlc.train import ControllerTraining, build, run, train
from pretrain.rl import checkpoint
from skills_store.manifest import Manifest
from skills_store.runtime.library import Controller, SkillLibrary
from skills_store.store import Store
from tests.hlc.bodies import clip_states, publish_skills

FINAL = "checkpoint.pt"


def weights(training: ControllerTraining) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": x
        for name, net in training.nets.modules().items()
        for key, x in net.state_dict().items()
    }


def test_resumed_training_is_bit_for_bit_the_uninterrupted_one(
    toy: HlcConfig, parent: Parent, tmp_path: Path
) -> None:
    whole = build(toy, parent)
    before = {key: x.clone() for key, x in weights(whole).items()}
    assert train(toy, whole, tmp_path / "whole")
    half = toy.model_copy(update={"samples": 16})
    assert train(half, build(half, parent), tmp_path / "parts")
    resumed = build(toy, parent)
    resumed.restore(checkpoint.load(tmp_path / "parts" / FINAL))
    assert train(toy, resumed, tmp_path / "parts")
    assert resumed.iteration == whole.iteration == 2
    ours = weights(whole)
    theirs = weights(resumed)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert any(not torch.equal(ours[key], before[key]) for key in ours)
    rows = [
        json.loads(row) for row in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert {"reward/env", "reward/style", "policy/kl", "samples"} <= set(rows[0])


def test_fewer_decisions_than_a_run_has_taken_are_refused(toy: HlcConfig) -> None:
    toy = toy.model_copy(update={"publish": False})
    assert run(toy) == 0
    with pytest.raises(ValueError, match=r"samples=16: .* has taken 32 samples already"):
        run(toy.model_copy(update={"samples": 16}))


def test_rerun_after_kill_during_publish_publishes_once(
    toy: HlcConfig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = Store(tmp_path / "store")
    skills = publish_skills(store).version.pinned
    whole_publish = Store.publish

    def killed(self: Store, manifest: Manifest, files: Mapping[str, bytes]) -> None:
        whole_publish(self, manifest, files)
        raise KeyboardInterrupt

    little = {"episode_length": 1.0, "eval": EvalConfig(episodes=4)}
    cfg = toy.model_copy(update={"store": str(store.root), "skill": skills, **little})
    with monkeypatch.context() as patch:
        patch.setattr(Store, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            run(cfg)
    assert run(cfg) == 0
    assert "reach@1" in capsys.readouterr().out
    assert store.latest("reach") == 1


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def published(store: Store, puppet_skills: Parent, runs: Path) -> Controller:
    """A controller, trained and published as by `python -m hlc.train`."""
    cfg = CONFIG_MODEL(
        skill=puppet_skills.version.pinned,
        engine="puppet",
        num_envs=64,
        samples=15_000,
        threads=1,
        episode_length=4.0,
        disc_reward_weight=0.0,
        # a puppet responds at once: it needs neither slow exploration nor a long horizon
        ppo=ControllerPPOConfig(
            gamma=0.95, action_std=0.2, noise_color=0.5, minibatch=256, hidden=(64, 64)
        ),
        eval=EvalConfig(episodes=24),
        runs=str(runs),
        store=str(store.root),
    )
    assert run(cfg) == 0
    return Controller.open(store, "reach@latest")


def test_trained_controller_returns_twice_the_random_return(published: Controller) -> None:
    card = published.version.manifest.card
    assert card["return_ratio"] > 2
    assert card["final_distance"] < 0.7 * card["final_distance_random"]
    curve = card["distance_curve"]["controller"]
    assert len(curve) == 100  # control steps of the longest-lived goals
    assert curve[49] < 0.8 * curve[0]


def test_published_controller_is_bound_to_the_digest_of_its_skills(
    published: Controller, puppet_skills: Parent
) -> None:
    manifest = published.version.manifest
    skills = puppet_skills.version.manifest
    assert manifest.task is not None
    assert manifest.task.parent.digest == puppet_skills.version.digest
    assert published.llc_steps == 5
    assert manifest.licence == skills.licence
    assert manifest.character == skills.character
    assert manifest.lineage.config["parent"] == skills.lineage.config
    assert trained_config(published.version).skill == puppet_skills.version.pinned
    assert not {"runs", "store"} & (
        set(manifest.lineage.config) | set(manifest.lineage.config["parent"])
    )
    assert {
        "return",
        "return_random",
        "return_ratio",
        "final_distance",
        "distance_curve",
        "cost",
    } <= set(manifest.card)


def test_published_graph_matches_the_trained_network(
    published: Controller, puppet_skills: Parent, runs: Path
) -> None:
    cfg = trained_config(published.version)
    training = build(cfg, puppet_skills)
    [folder] = runs.iterdir()
    training.restore(checkpoint.load(folder / FINAL))
    state = clip_states(puppet_skills, 50, seed=3)
    goal = cfg.chosen_task().draw(state, torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = ControllerGraph(training.nets.policy, cfg.chosen_task())(
            state.flatten(), goal
        ).numpy()
    found = published.decide(state.flatten().numpy(), goal.numpy())
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, atol=1e-5)
    parity = published.version.manifest.graphs["controller"].parity
    assert parity.max_abs_error <= 1e-5
    assert parity.rows > 500


def test_controller_refuses_other_skills(published: Controller, store: Store) -> None:
    other = publish_skills(store, seed=1)
    with pytest.raises(Exception, match="parent of reach@1"):
        Controller.open(store, "reach@latest", library=SkillLibrary.open(store, other.version))


def test_evaluation_of_the_published_bytes_repeats_the_card(
    published: Controller, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["controller=reach@latest", f"store={store.root}", "episodes=24", "json=true"]
    assert evaluate(arguments) == 0
    card = json.loads(capsys.readouterr().out)
    assert card == {
        key: value for key, value in published.version.manifest.card.items() if key != "cost"
    }


def test_evaluation_changes_parameters_of_the_task(
    published: Controller, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["controller=reach@latest", f"store={store.root}", "episodes=4", "json=true"]
    assert evaluate([*command, "reach.height_max=0.9"]) == 0
    assert json.loads(capsys.readouterr().out)["goal_ranges"]["height"] == [0.7, 0.9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("speed.speed_max=2", "speed.speed_max=2: the controller's task is reach"),
        ("reach.height=1", "reach: height: Extra inputs are not permitted, got 1; parameters of"),
        ("reach.height_max=0.1", "height_min 0.7 is above height_max 0.1"),
        ("reach.height_max=high", "height_max: Input should be a valid number"),
        ("reach.height_max=[1", "'[1' is no value in YAML"),
    ],
)
def test_invalid_changes_of_the_task_are_refused(
    published: Controller,
    store: Store,
    capsys: pytest.CaptureFixture[str],
    change: str,
    message: str,
) -> None:
    assert evaluate(["controller=reach@latest", f"store={store.root}", change]) == 2
    assert message in capsys.readouterr().err
