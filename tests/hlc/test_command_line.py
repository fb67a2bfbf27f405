"""Errors of the command line list the valid values."""

from __future__ import annotations

import pytest

from hlc.config import CONFIG_MODEL
from hlc.evaluate import main as evaluate
from hlc.parent import Parent
from hlc.plan import main as plan
from hlc.tasks import TASKS
from hlc.tasks.task import Task
from hlc.train import main
from pretrain.overrides import load_config
from skills_store.store import Store


def test_every_task_can_be_chosen_by_name() -> None:
    for name, kind in TASKS.items():
        cfg = load_config(CONFIG_MODEL, "hlc.conf", [f"task={name}"])
        assert cfg.task == name
        task: Task = cfg.chosen_task()
        assert isinstance(task, kind)


def test_keys_and_presets_reach_the_configuration() -> None:
    cfg = load_config(
        CONFIG_MODEL,
        "hlc.conf",
        ["task=reach", "preset=toy", "ppo.lr=1e-3", "reach.height_max=1.8"],
    )
    assert (cfg.num_envs, cfg.ppo.horizon, cfg.ppo.lr, cfg.reach.height_max) == (32, 4, 1e-3, 1.8)
    assert load_config(CONFIG_MODEL, "hlc.conf", []) == CONFIG_MODEL()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("samples=3", "unknown key samples; there are: task, skill"),
        ("ppo.lr=1e-3", "unknown key ppo.lr; there are: task, skill"),
        ("publish=false", "unknown key publish; there are: task, skill"),
        ("eval.episodes=3", "unknown key eval.episodes; near it: plan.episodes"),
    ],
)
def test_planning_refuses_keys_of_a_training(
    argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan([argument]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "listed"),
    [
        ("task=fly", "no task 'fly'; there are: reach"),
        ("preset=huge", "Available options in 'preset': full planned toy"),
        ("learning_rate=1", "ppo.*"),
        ("lr=1", "ppo.lr"),
        ("reach.depth=1", "reach.body"),
        ("ppo.gamma=2", "ppo.gamma"),
        ("reach.height_min=3", "height_max"),
        ("speed.speed_max=2", "speed.* has no effect with task=reach; expected reach.*"),
        ("warm.value_samples=100", "expected warm.controller=NAME@N or clone.decisions=N"),
        ("skill=biped", "humanoid"),
        ("skill=humanoid@99", "1"),
    ],
)
def test_unknown_value_error_lists_the_existing_ones(
    argument: str, listed: str, store: Store, parent: Parent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preset=toy", f"store={store.root}", argument]) == 2
    error = capsys.readouterr().err
    assert listed in error
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1


def test_config_model_refuses_an_unknown_task() -> None:
    with pytest.raises(ValueError, match="no task 'fly'; there are: reach"):
        CONFIG_MODEL(task="fly")


def test_evaluation_errors_list_valid_keys_and_stored_skills(
    store: Store, parent: Parent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(["task=reach"]) == 2
    assert "controller, store, episodes, planner, seed, json" in capsys.readouterr().err
    assert evaluate([f"store={store.root}", "controller=grasp@latest"]) == 2
    assert "humanoid" in capsys.readouterr().err
    assert evaluate([f"store={store.root}", "controller=humanoid@1"]) == 2
    assert "humanoid@1" in capsys.readouterr().err
