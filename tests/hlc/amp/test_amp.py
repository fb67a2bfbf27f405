"""AMP with a task: training, rewards, evaluation and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hlc.amp.__main__ import main, train
from hlc.amp.config import CONFIG_MODEL, AmpConfig, AmpPPOConfig
from hlc.amp.evaluation import GoalPolicy, evaluate
from hlc.amp.training import AmpTraining, build
from hlc.nets import observation
from hlc.parent import Parent
from hlc.tasks.task import checked_reward
from pretrain.ase_config import DiscConfig
from pretrain.characters.state import unflatten
from pretrain.rl import checkpoint
from pretrain.rl.learner import Diverged
from pretrain.rl.training import CHECKPOINT
from pretrain.sim.env import ActionScale
from skills_store.store import Store
from tests.hlc.bodies import clip_states
from tests.rl.nan_loss import spoil_value_loss
from tests.skills_store.full import run_with_files_of_at_most


@pytest.fixture
def cfg(store: Store, parent: Parent, tmp_path: Path) -> AmpConfig:
    """Two iterations of eight control steps in four worlds."""
    return CONFIG_MODEL(
        task="location",
        skill=parent.version.pinned,
        num_envs=4,
        samples=64,
        ppo=AmpPPOConfig(horizon=8, epochs=1, minibatch=16, hidden=(16,)),
        disc=DiscConfig(
            conditional=False, rows=16, minibatch=16, disc_replay_samples=1, hidden=(16,)
        ),
        runs=str(tmp_path),
        store=str(store.root),
        threads=1,
    )


def small(cfg: AmpConfig) -> dict[str, Any]:
    """The settings of a short run of `speed`, as keys of the command line."""
    return {
        "skill": cfg.skill,
        "store": cfg.store,
        "runs": cfg.runs,
        "task": "speed",
        "num_envs": 4,
        "samples": 64,
        "ppo.horizon": 8,
        "disc.rows": 16,
        "eval.episodes": 4,
        "episode_length": 1.0,
        "threads": 1,
    }


def weights(training: AmpTraining) -> list[torch.Tensor]:
    nets = training.nets.modules().values()
    return [x.clone() for net in nets for x in net.state_dict().values()]


def test_all_networks_train_and_a_resumed_run_is_bit_identical(
    cfg: AmpConfig, parent: Parent, tmp_path: Path
) -> None:
    whole = build(cfg, parent)
    before = {name: next(net.parameters()).clone() for name, net in whole.nets.modules().items()}
    assert train(cfg, whole, tmp_path / "whole")
    for name, net in whole.nets.modules().items():
        assert not torch.equal(next(net.parameters()), before[name]), name
    half = cfg.model_copy(update={"samples": 32})
    assert train(half, build(half, parent), tmp_path / "parts")
    resumed = build(cfg, parent)
    resumed.restore(checkpoint.load(tmp_path / "parts" / "checkpoint.pt"))
    assert train(cfg, resumed, tmp_path / "parts")
    assert all(map(torch.equal, weights(whole), weights(resumed)))


def test_nan_gradients_stop_the_run_and_keep_its_checkpoint(
    cfg: AmpConfig, parent: Parent, tmp_path: Path
) -> None:
    training = build(cfg, parent)
    assert train(cfg.model_copy(update={"samples": 32}), training, tmp_path)
    saved = (tmp_path / CHECKPOINT).read_bytes()
    training.objective = spoil_value_loss(training.objective)
    with pytest.raises(Diverged, match=r"value: .* gradient steps were not finite"):
        train(cfg, training, tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == saved


@pytest.mark.parametrize(("most", "unwritten"), [(500, "config.json"), (20_000, CHECKPOINT)])
def test_full_disk_error_names_the_file_and_a_rerun_resumes(
    cfg: AmpConfig, tmp_path: Path, most: int, unwritten: str
) -> None:
    given = [f"{key}={value}" for key, value in small(cfg).items()]
    filled = run_with_files_of_at_most(most, "hlc.amp", given)
    assert filled.returncode == 2
    (line,) = filled.stderr.splitlines()
    assert unwritten in line
    assert main(given) == 0
    (file,) = tmp_path.glob("amp-speed-*/evaluation.json")
    assert json.loads(file.read_text())["samples"] == 64


def test_reward_is_the_task_reward_and_0_at_termination(cfg: AmpConfig, parent: Parent) -> None:
    env = build(cfg, parent).env
    generator = torch.Generator().manual_seed(0)
    failures = 0
    for _ in range(60):  # random actions fall within two seconds
        step = env.step(
            2 * torch.randn(4, parent.character.skeleton.num_hinges, generator=generator)
        )
        assert (step.reward[step.terminated] == 0).all()
        assert not (step.terminated & step.truncated).any()
        failures += int(step.terminated.sum())
        env.reset((step.terminated | step.truncated).nonzero()[:, 0])
    assert failures
    held = env.goals.goal.clone()
    step = env.step(torch.zeros(4, parent.character.skeleton.num_hinges))
    expected = checked_reward(env.task, env.env.skeleton, env.env.state(), held)
    up = ~step.terminated
    assert torch.equal(step.reward[up], expected[up])
    assert step.extras["window"].shape == (4, env.env.frames[0].numel())


def test_a_policy_is_evaluated_on_the_goals_that_it_sees(cfg: AmpConfig, parent: Parent) -> None:
    training = build(cfg, parent)
    scale = ActionScale.from_library(parent.clips)
    task = cfg.chosen_task()
    actor = GoalPolicy(training.nets.policy, scale, task, 2)
    state = clip_states(parent, 3).flatten()
    goal = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])
    with torch.no_grad():
        mean = training.nets.policy(observation(task, unflatten(state), goal))
    expected = scale.target(mean)
    assert torch.equal(torch.from_numpy(actor.act(state.numpy(), goal.numpy())), expected)


def test_untrained_policy_falls_and_has_a_low_return(cfg: AmpConfig, parent: Parent) -> None:
    few = cfg.eval.model_copy(update={"episodes": 8})
    short = cfg.model_copy(update={"eval": few, "episode_length": 3.0})
    measures = evaluate(short, parent, build(cfg, parent).nets.policy)
    assert measures["return"]["n"] == 8
    assert measures["return"]["mean"] < 18  # decisions in 3 s
    assert measures["falls_per_minute"]["mean"] > 10


def test_a_run_ends_with_its_evaluation(
    cfg: AmpConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{key}={value}" for key, value in small(cfg).items()]) == 0
    (file,) = tmp_path.glob("amp-speed-*/evaluation.json")
    measures = json.loads(file.read_text())
    assert measures["samples"] == 64
    assert "return" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("task=fly", "no task 'fly'; there are: reach"),
        ("disc.conditional=true", "disc.conditional true needs a latent, and AMP has none"),
        ("ppo.gama=0.9", "ppo.gamma"),
    ],
)
def test_unsupported_arguments_are_a_one_line_error(
    argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
