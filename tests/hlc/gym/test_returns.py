"""The returns that each RL library computes per autoreset mode, as docs/tasks.md states them, on
environments of known returns with the exact value function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hlc.gym
from tests.hlc.gym.counting import RETURNS, VALUE_PER_STEP, CountingBatch

STEPS = 8
N = 2
pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries

Make = Callable[[str], hlc.gym.SkillVectorEnv]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr("hlc.gym.vector_env.TaskBatch", CountingBatch)
    return lambda mode: hlc.gym.SkillVectorEnv(N, "reach", autoreset_mode=mode)


def check_first_episodes(found: Tensor, expected: str) -> None:
    """`found` (STEPS, N): the return from each step."""
    for world, returns in enumerate(RETURNS[expected]):
        torch.testing.assert_close(found[: len(returns), world], torch.tensor(returns))


def test_stable_baselines3_returns_are_exact(make: Make) -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra examples")
    from hlc.gym.sb3_env import Sb3VecEnv

    model = sb3.PPO(
        "MlpPolicy",
        Sb3VecEnv(make("SameStep")),
        policy_kwargs={"net_arch": []},
        n_steps=STEPS,
        batch_size=STEPS * N,
        gamma=1.0,
        gae_lambda=1.0,
        learning_rate=0.0,
    )
    model.policy.value_net.weight.data.fill_(VALUE_PER_STEP)
    model.policy.value_net.bias.data.zero_()
    model.learn(STEPS * N)
    buffer = model.rollout_buffer
    returns = torch.from_numpy(buffer.returns).view(N, STEPS).T  # flattened world by world
    check_first_episodes(returns, "true")
    assert sorted((x["r"], x["l"]) for x in episodes(model)) == [(2, 2)] * 3 + [(3, 3)] * 2


def episodes(model) -> list[dict]:
    """The episode statistics of VecMonitor over 6 steps."""
    from stable_baselines3.common.vec_env import VecMonitor

    env = VecMonitor(model.get_env())
    env.reset()
    found: list[dict] = []
    for _ in range(6):
        _, _, _, infos = env.step(np.zeros((N, 2), np.float32))
        found += [info["episode"] for info in infos if "episode" in info]
    return found


def test_stable_baselines3_refuses_next_step_autoreset(make: Make) -> None:
    pytest.importorskip("stable_baselines3", reason="needs the extra examples")
    from hlc.gym.sb3_env import Sb3VecEnv

    with pytest.raises(ValueError, match="autoreset_mode is 'NextStep', expected 'SameStep'"):
        Sb3VecEnv(make("NextStep"))


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_torchrl_returns_are_exact(make: Make, mode: str) -> None:
    pytest.importorskip("torchrl", reason="needs the extra examples")
    from tensordict.nn import TensorDictModule
    from torchrl.envs import GymWrapper
    from torchrl.objectives.value import GAE

    env = GymWrapper(make(mode))
    rollout = env.rollout(STEPS, break_when_any_done=False)
    value = TensorDictModule(
        lambda obs: VALUE_PER_STEP * obs, in_keys=["observation"], out_keys=["state_value"]
    )
    GAE(gamma=1.0, lmbda=1.0, value_network=value)(rollout)
    check_first_episodes(rollout["value_target"][..., 0].T, "true")


def test_torchrl_refuses_next_step_autoreset(make: Make) -> None:
    pytest.importorskip("torchrl", reason="needs the extra examples")
    from torchrl.envs import GymWrapper

    with pytest.raises(RuntimeError, match="autoreset_mode=AutoresetMode"):
        GymWrapper(make("NextStep"))


@pytest.mark.parametrize(
    ("mode", "expected"), [("NextStep", "true"), ("SameStep", "time limit as the end")]
)
def test_skrl_returns_are_exact_only_with_next_step_autoreset(
    make: Make, mode: str, expected: str, tmp_path, monkeypatch
) -> None:
    """With time_limit_bootstrap. In SameStep it bootstraps from the state after the reset, whose
    value is 0 here, instead of that at the limit."""
    monkeypatch.chdir(tmp_path)
    check_first_episodes(skrl_returns(make(mode), bootstrap=True), expected)


def test_skrl_sums_through_time_limits_by_default(make: Make, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    returns = skrl_returns(make("SameStep"), bootstrap=False)
    assert returns[0, 0] == STEPS + VALUE_PER_STEP * (STEPS % 3)  # the return of the episode is 3
    assert returns[0, 1] == 2


def test_skrl_stores_the_reset_as_a_step_with_next_step_autoreset(
    make: Make, tmp_path, monkeypatch
) -> None:
    """One extra row an episode: its reward is 0, and it goes from the end to the start."""
    monkeypatch.chdir(tmp_path)
    returns = skrl_returns(make("NextStep"), bootstrap=True)
    assert returns[3, 0] == returns[4, 0] == 33


def skrl_returns(envs: hlc.gym.SkillVectorEnv, bootstrap: bool) -> Tensor:
    """(STEPS, N), of its PPO over one rollout."""
    pytest.importorskip("skrl", reason="needs the extra examples")
    from skrl.agents.torch.ppo import PPO
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils.model_instantiators.torch import deterministic_model, gaussian_model

    env = wrap_env(envs)
    spaces: dict[str, Any] = {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
    }
    layers = {"name": "net", "input": "OBSERVATIONS", "layers": [], "activations": ""}
    models: dict[str, Any] = {
        "policy": gaussian_model(**spaces, network=[layers], output="ACTIONS"),
        "value": deterministic_model(**spaces, network=[layers], output="ONE"),
    }
    models["value"].act({"observations": torch.zeros(1, 1)}, role="value")  # sizes its layer
    weight, bias = models["value"].parameters()
    weight.data.fill_(VALUE_PER_STEP)
    bias.data.zero_()
    cfg = {"rollouts": STEPS, "discount_factor": 1.0, "gae_lambda": 1.0, "learning_epochs": 1}
    cfg |= {"learning_rate": 0.0, "time_limit_bootstrap": bootstrap}
    cfg |= {"experiment": {"write_interval": 0, "checkpoint_interval": 0}}
    memory = RandomMemory(memory_size=STEPS, num_envs=N)
    agent = PPO(models=models, memory=memory, cfg=cfg, **spaces)
    trainer = {"timesteps": STEPS, "headless": True, "close_environment_at_exit": False}
    SequentialTrainer(env=env, agents=agent, cfg=trainer).train()
    return memory.get_tensor_by_name("returns").view(STEPS, N)
