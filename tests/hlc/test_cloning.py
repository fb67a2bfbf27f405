"""Cloning: a controller learns the planner's decisions before its first iteration."""

from __future__ import annotations

import pytest
import torch

from hlc.cloning import clone_planner, collect_labels
from hlc.config import CONFIG_MODEL, CloneConfig, ControllerPPOConfig, HlcConfig, PlanConfig
from hlc.parent import Parent
from hlc.task_env import on_sphere
from hlc.train import build, controller_objective, run
from pretrain.overrides import load_config


@pytest.fixture
def cfg(puppet_skills: Parent) -> HlcConfig:
    return CONFIG_MODEL(
        skill=puppet_skills.version.pinned,
        engine="puppet",
        threads=1,
        num_envs=32,
        episode_length=4.0,
        ppo=ControllerPPOConfig(hidden=(64, 64)),
        plan=PlanConfig(candidates=16, horizon=10),
        clone=CloneConfig(decisions=3000, worlds=64, epochs=30),
    )


def test_cloning_raises_the_reward_of_a_new_controller(
    cfg: HlcConfig, puppet_skills: Parent, capsys: pytest.CaptureFixture[str]
) -> None:
    training = build(cfg, puppet_skills)
    fresh = mean_reward(cfg, puppet_skills)
    clone_planner(cfg, puppet_skills, training.nets)
    assert "3,008 planned decisions" in capsys.readouterr().out
    assert mean_reward(cfg, puppet_skills, training) > 1.3 * fresh


def mean_reward(cfg: HlcConfig, parent: Parent, training=None) -> float:
    """Mean task reward of the policy's own decisions over one episode."""
    training = training or build(cfg, parent)
    env = training.env
    rewards = []
    with torch.no_grad():
        for _ in range(24):
            step = env.step(on_sphere(training.nets.policy(env.observe())))
            rewards.append(step.reward)
    return float(torch.cat(rewards).mean())


def test_labels_are_unit_and_the_same_for_the_same_seed(
    cfg: HlcConfig, puppet_skills: Parent
) -> None:
    few = cfg.model_copy(update={"clone": CloneConfig(decisions=64, worlds=32)})
    a, b = (collect_labels(few, puppet_skills) for _ in range(2))
    assert torch.equal(a.z, b.z)
    torch.testing.assert_close(a.z.norm(dim=-1), torch.ones(64))
    assert {name: len(x) for name, x in a.obs.items()} == {"obs": 64, "goal": 64}


def test_initial_weights_do_not_depend_on_clone_config(
    cfg: HlcConfig, puppet_skills: Parent
) -> None:
    a = build(cfg, puppet_skills).nets.policy.state_dict()
    b = build(
        cfg.model_copy(update={"clone": CloneConfig()}), puppet_skills
    ).nets.policy.state_dict()
    assert all(torch.equal(a[key], b[key]) for key in a)


def test_planned_preset_has_fall_penalty_and_no_alive_reward(puppet_skills: Parent) -> None:
    cfg = load_config(CONFIG_MODEL, "hlc.conf", ["preset=planned"])
    assert (cfg.shaping, cfg.clone.decisions) == ("potential", 20000)
    nets = build(
        cfg.model_copy(update={"skill": puppet_skills.version.pinned, "num_envs": 2}), puppet_skills
    )
    rewards = controller_objective(cfg, nets.nets, puppet_skills.skills).rewards
    assert rewards["alive"][0] == 0.0
    assert rewards["fall"][0] > 0.0
    before = controller_objective(CONFIG_MODEL(), nets.nets, puppet_skills.skills).rewards
    assert (before["alive"][0], before["fall"][0]) == (1.0, 0.0)


def test_training_clones_at_start_and_not_on_resume(
    toy: HlcConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    cfg = toy.model_copy(
        update={
            "publish": False,
            "plan": PlanConfig(candidates=2, horizon=2),
            "clone": CloneConfig(decisions=8, worlds=4, epochs=1),
        }
    )
    assert run(cfg) == 0
    assert "8 planned decisions" in capsys.readouterr().out
    assert run(cfg.model_copy(update={"samples": 64})) == 0
    printed = capsys.readouterr().out
    assert "going on after 32" in printed
    assert "planned decisions" not in printed
