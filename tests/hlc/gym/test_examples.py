"""examples/: each RL library trains on the environments."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import gymnasium
import pytest
import torch

import hlc.gym
from hlc.parent import Parent
from skills_store.store import Store

FOLDER = Path(__file__).parents[3] / "examples"
N = 4


def example(name: str, library: str) -> ModuleType:
    """The module examples/NAME.py; skipped where `library` is not installed."""
    pytest.importorskip(library, reason=f"examples/{name}.py needs the extra examples")
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def make(puppet_skills: Parent, store: Store) -> Callable[[str], hlc.gym.SkillVectorEnv]:
    where = {"skill": puppet_skills.version.ref, "store": str(store.root), "engine": "puppet"}

    def make_envs(autoreset_mode: str) -> hlc.gym.SkillVectorEnv:
        settings = {**where, "threads": 1, "episode_length": 1.0, "autoreset_mode": autoreset_mode}
        envs = gymnasium.make_vec("repertoire/Speed-v0", num_envs=N, **settings)
        assert isinstance(envs, hlc.gym.SkillVectorEnv)
        return envs

    return make_envs


@pytest.mark.filterwarnings("ignore")
def test_stable_baselines3_trains(make) -> None:
    module = example("sb3_ppo", "stable_baselines3")
    envs = make("SameStep")
    model = module.train(envs, 8 * N)
    assert model.num_timesteps == 8 * N
    assert model._n_updates > 0


@pytest.mark.filterwarnings("ignore")
def test_skrl_trains(make, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # its logs
    module = example("skrl_ppo", "skrl")
    agent = module.train(make("NextStep"), 16 * N)
    assert agent.optimizer.state  # it has stepped


@pytest.mark.filterwarnings("ignore")
def test_torchrl_trains(make) -> None:
    module = example("torchrl_ppo", "torchrl")
    weights = []
    for batches in (1, 2):
        torch.manual_seed(0)
        actor = module.train(make("SameStep"), batches * 8 * N)
        weights.append(torch.cat([x.detach().flatten() for x in actor.parameters()]))
    assert torch.isfinite(torch.stack(weights)).all()
    assert not torch.equal(*weights)  # the second batch changed them


def test_examples_have_at_most_50_lines() -> None:
    for file in FOLDER.glob("*.py"):
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 50, file
