"""Warm start of a controller from a published one, also on another version of its library."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from hlc.config import ControllerPPOConfig, EvalConfig, HlcConfig, WarmConfig
from hlc.export import ControllerGraph
from hlc.parent import Parent
from hlc.train import ControllerTraining, build, run
from hlc.warm_start import load_controller
from skills_store.errors import StoreError
from skills_store.runtime.library import Controller
from skills_store.store import Store
from tests.hlc.bodies import clip_states, make_toy, publish_skills


@dataclass(frozen=True)
class Update:
    """A library, a controller trained on it, and the library's next version."""

    store: Store
    older: Parent
    controller: Controller
    newer: Parent
    cfg: HlcConfig  # of a warm start on the newer version


@pytest.fixture(scope="module")
def update(tmp_path_factory: pytest.TempPathFactory) -> Update:
    store = Store(tmp_path_factory.mktemp("store"))
    older = publish_skills(store)
    toy = make_toy(older, store, tmp_path_factory.mktemp("runs"))
    cfg = toy.model_copy(update={"episode_length": 1.0, "eval": EvalConfig(episodes=4)})
    assert run(cfg) == 0
    newer = publish_skills(store, seed=1)
    warm = WarmConfig(controller="reach@1", value_samples=0)
    on_newer = cfg.model_copy(update={"skill": newer.version.pinned, "warm": warm})
    return Update(store, older, Controller.open(store, "reach@1"), newer, on_newer)


def build_warm(update: Update, cfg: HlcConfig) -> ControllerTraining:
    training = build(cfg, update.newer)
    load_controller(training.nets, update.controller.version, update.newer, update.store)
    return training


def test_the_loaded_policy_decides_as_the_published_one(update: Update) -> None:
    task = update.cfg.chosen_task()
    states = clip_states(update.older, 8)
    goals = task.draw(states, torch.Generator().manual_seed(0))
    policy = build_warm(update, update.cfg).nets.policy
    with torch.no_grad():
        ours = ControllerGraph(policy, task)(states.flatten(), goals)
    theirs = update.controller.decide(states.flatten().numpy(), goals.numpy())
    assert torch.allclose(ours, torch.from_numpy(theirs), atol=1e-5)


@pytest.mark.parametrize(("held", "fitted"), [(0, True), (10_000, False)])
def test_the_policy_is_held_while_the_value_net_learns(
    update: Update, held: int, fitted: bool
) -> None:
    warm = WarmConfig(controller="reach@1", value_samples=held)
    training = build_warm(update, update.cfg.model_copy(update={"warm": warm}))
    nets = {"policy": training.nets.policy, "value": training.nets.value}
    before = {name: net.body[0].weight.clone() for name, net in nets.items()}
    training.iterate()
    training.background.finish_fits()
    changed = {
        name: not torch.equal(before[name], net.body[0].weight) for name, net in nets.items()
    }
    assert changed == {"policy": fitted, "value": True}


def test_the_new_controller_is_bound_to_the_newer_library(update: Update) -> None:
    warm = WarmConfig(controller="reach@latest")
    assert run(update.cfg.model_copy(update={"warm": warm})) == 0
    manifest = update.store.resolve("reach@2").manifest
    assert manifest.task is not None
    assert manifest.task.parent.digest == update.newer.version.digest
    # `latest` is another version by now
    assert manifest.lineage.config["warm"]["controller"] == update.controller.version.pinned


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"ppo": ControllerPPOConfig(hidden=(8,))},
            r"ppo.hidden is \[8\], and the published network has",
        ),
        ({"task": "speed"}, "warm.controller=reach@1 is of the task 'reach'; expected 'speed'"),
    ],
)
def test_a_controller_of_another_shape_is_refused(
    update: Update, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(update.cfg.model_copy(update=changed))


def test_a_library_and_a_missing_version_are_refused(update: Update) -> None:
    library = update.older.version.ref
    with pytest.raises(ValueError, match="kind 'skills'; expected a controller"):
        run(update.cfg.model_copy(update={"warm": WarmConfig(controller=library)}))
    with pytest.raises(StoreError, match="no version '7' in reach"):
        run(update.cfg.model_copy(update={"warm": WarmConfig(controller="reach@7")}))


def test_library_of_another_name_gives_a_warning(
    update: Update, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = update.newer.version.manifest.model_copy(update={"name": "other"})
    files = {
        name: update.store.read(update.newer.version, name)
        for name in update.newer.version.manifest.files
    }
    other = update.store.publish(manifest, files)
    on_other = update.cfg.model_copy(update={"skill": other.pinned, "publish": False})
    assert run(on_other) == 0
    warning = f"warning: reach@1 was trained on {update.older.version.name}, whose latents"
    assert warning in capsys.readouterr().err
