"""Tracking runs: training, resuming, evaluation and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from pretrain.rl import checkpoint
from pretrain.rl.learner import Diverged
from pretrain.rl.ppo_config import PPOConfig
from pretrain.rl.rollout import Step
from pretrain.rl.training import CHECKPOINT
from pretrain.tracking.__main__ import main, train
from pretrain.tracking.config import AddConfig, TrackingConfig, TrackingEvalConfig
from pretrain.tracking.env import TrackingEnv
from pretrain.tracking.evaluation import Played, evaluate, play, summarize
from pretrain.tracking.training import TrackingTraining, build, make_env
from pretrain.training_data import TrainingData
from tests.rl.nan_loss import spoil_value_loss
from tests.skills_store.full import run_with_files_of_at_most

VARIANTS = [
    {"reward": "deepmimic", "algorithm": "ppo"},
    {"reward": "add", "algorithm": "ppo"},
    {"reward": "deepmimic", "algorithm": "awr"},
]


SMALL_ADD = AddConfig(rows=32, minibatch=32, disc_replay_samples=4, hidden=(15,))


def small(tmp_path: Path, **settings: Any) -> TrackingConfig:
    """Two iterations of eight control steps in eight worlds."""
    return TrackingConfig(
        num_envs=8,
        samples=128,
        ppo=PPOConfig(horizon=8, minibatch=32, hidden=(15,), value_hidden=(15,), noise_color=0.0),
        add=SMALL_ADD if settings.get("reward") == "add" else AddConfig(),
        eval=TrackingEvalConfig(episodes=4),
        runs=str(tmp_path),
        threads=1,
        **settings,
    )


def weights(training: TrackingTraining) -> list[torch.Tensor]:
    nets = training.nets.modules().values()
    return [x.clone() for net in nets for x in net.state_dict().values()]


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_networks_train_and_a_resumed_run_is_bit_identical(
    training_data: TrainingData, tmp_path: Path, variant: dict[str, str]
) -> None:
    cfg = small(tmp_path, **variant)
    whole = build(cfg, training_data)
    before = {name: next(net.parameters()).clone() for name, net in whole.nets.modules().items()}
    assert set(before) == {"policy", "value"} | ({"disc"} if cfg.reward == "add" else set())
    assert train(cfg, whole, tmp_path / "whole")
    for name, net in whole.nets.modules().items():
        assert not torch.equal(next(net.parameters()), before[name]), name
    half = cfg.model_copy(update={"samples": 64})
    assert train(half, build(half, training_data), tmp_path / "parts")
    resumed = build(cfg, training_data)
    resumed.restore(checkpoint.load(tmp_path / "parts" / CHECKPOINT))
    assert train(cfg, resumed, tmp_path / "parts")
    assert all(map(torch.equal, weights(whole), weights(resumed)))


def test_the_reward_is_the_chosen_one_alone(training_data: TrainingData, tmp_path: Path) -> None:
    assert build(small(tmp_path), training_data).loop.env_reward_weight == 1
    training = build(small(tmp_path, reward="add"), training_data)
    assert training.loop.env_reward_weight == 0
    assert {name: weight for name, (weight, _) in training.objective.rewards.items()} == {"add": 1}


def test_nan_gradients_stop_the_run_and_keep_its_checkpoint(
    training_data: TrainingData, tmp_path: Path
) -> None:
    cfg = small(tmp_path)
    training = build(cfg, training_data)
    assert train(cfg.model_copy(update={"samples": 64}), training, tmp_path)
    saved = (tmp_path / CHECKPOINT).read_bytes()
    training.objective = spoil_value_loss(training.objective)
    with pytest.raises(Diverged, match=r"value: .* gradient steps were not finite"):
        train(cfg, training, tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == saved


def arguments(tmp_path: Path) -> list[str]:
    """A short run, as keys of the command line."""
    return [
        f"runs={tmp_path}",
        "threads=1",
        "num_envs=4",
        "samples=64",
        "ppo.horizon=8",
        "eval.episodes=2",
    ]


@pytest.mark.parametrize(("most", "unwritten"), [(500, "config.json"), (20_000, CHECKPOINT)])
def test_full_disk_error_names_the_file_and_a_rerun_resumes(
    tmp_path: Path, most: int, unwritten: str
) -> None:
    filled = run_with_files_of_at_most(most, "pretrain.tracking", arguments(tmp_path))
    assert filled.returncode == 2
    (line,) = filled.stderr.splitlines()
    assert unwritten in line
    assert main(arguments(tmp_path)) == 0
    (file,) = tmp_path.glob("tracking-*/evaluation.json")
    assert json.loads(file.read_text())["samples"] == 64


def test_a_run_ends_with_a_row_for_each_clip(
    tmp_path: Path, training_data: TrainingData, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path)) == 0
    (file,) = tmp_path.glob("tracking-*/evaluation.json")
    library = training_data.library
    originals = [name for i, name in enumerate(library.names) if library.originals[i] == i]
    assert list(json.loads(file.read_text())["clips"]) == originals
    printed = capsys.readouterr().out.splitlines()[-len(originals) :]
    assert [line.split()[0] for line in printed] == originals


class Script:
    """Worlds of a given number of steps; the first of them ends in a failure, the others in time.
    The distance of a step is its number in m, its reward a tenth of it."""

    def __init__(self, lengths: list[int]):
        self.num_envs = len(lengths)
        self.lengths = torch.tensor(lengths)
        self.count = 0

    def observe(self) -> dict[str, torch.Tensor]:
        return {}

    def step(self, action: torch.Tensor) -> Step:
        self.count += 1
        over = self.lengths == self.count
        first = torch.arange(self.num_envs) == 0
        numbers = torch.full((self.num_envs,), float(self.count))
        return Step({}, 0.1 * numbers, over & first, over & ~first, {"distance": numbers})


def test_an_episode_is_measured_until_its_own_end() -> None:
    env = Script([2, 3, 1])
    played = play(env, lambda obs: torch.zeros(3, 1))  # pyright: ignore[reportArgumentType]
    assert env.count == 3
    assert played.completed.tolist() == [False, True, True]
    assert played.steps.tolist() == [2, 3, 1]
    assert played.distance.tolist() == [1.5, 2, 1]
    assert played.final_distance.tolist() == [2, 3, 1]
    assert played.reward.tolist() == pytest.approx([0.3, 0.6, 0.1])


def test_a_failed_episode_has_no_reward_after_its_end_and_no_body_error() -> None:
    played = Played(
        completed=torch.tensor([True, False, True, True]),
        steps=torch.tensor([30.0, 15.0, 30.0, 30.0]),
        distance=torch.tensor([0.1, 0.01, 0.1, 0.5]),
        final_distance=torch.tensor([0.1, 0.3, 0.4, 0.1]),  # the third is falling at its end
        reward=torch.tensor([24.0, 12.0, 24.0, 24.0]),
    )
    chosen = torch.tensor([True, True, True, False])
    measured = summarize(played, torch.full((4,), 30.0), chosen)
    assert measured["completed"]["mean"] == pytest.approx(1 / 3)
    assert measured["seconds"]["mean"] == pytest.approx(75 / 90)
    assert measured["body_error"]["mean"] == pytest.approx(0.1)
    assert measured["reward"]["mean"] == pytest.approx((0.8 + 0.4 + 0.8) / 3)


class Playback(torch.nn.Module):
    """Actions that hold the pose of the first reference state in the observation."""

    def __init__(self, env: TrackingEnv):
        super().__init__()
        self.scale = env.action_scale
        self.hinges = env.env.skeleton.num_hinges

    def forward(self, obs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.scale.action(obs["target"][:, 9 : 9 + self.hinges])


def test_playback_lasts_longer_and_has_more_reward_than_an_untrained_policy(
    training_data: TrainingData, tmp_path: Path
) -> None:
    cfg = small(tmp_path, episode_length=3.0)
    untrained = build(cfg, training_data).nets.policy
    playback = Playback(make_env(cfg, training_data, 1, torch.Generator()))
    played = evaluate(cfg, training_data, playback)
    others = evaluate(cfg, training_data, untrained)
    library = training_data.library
    originals = [name for i, name in enumerate(library.names) if library.originals[i] == i]
    assert list(played) == list(others) == originals
    for measure in ("seconds", "reward"):
        means = [
            sum(clip[measure]["mean"] for clip in measures.values())
            for measures in (played, others)
        ]
        assert means[0] > means[1]


def test_neither_playback_nor_an_untrained_policy_completes_a_walk(
    training_data: TrainingData, tmp_path: Path
) -> None:
    cfg = small(tmp_path)
    playback = Playback(make_env(cfg, training_data, 1, torch.Generator()))
    for policy in (playback, build(cfg, training_data).nets.policy):
        walk = evaluate(cfg, training_data, policy)["walk"]
        assert (walk["completed"]["n"], walk["completed"]["mean"]) == (4, 0)
        assert walk["body_error"]["mean"] is None
        assert walk["seconds"]["mean"] < 5


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("motions=nowhere", "nowhere"),
        ("reward=amp", "reward"),
        ("algorithm=sac", "algorithm"),
        ("tar_obs_steps=[0]", "tar_obs_steps"),
        ("ppo.gama=0.9", "ppo.gamma"),
        ("add.lr=0.1", "add.* has no effect with reward=deepmimic; expected reward=add"),
        (
            "algorithm=awr ppo.noise_color=0.5",
            "ConfigError: ppo.noise_color 0.5 with algorithm=awr; expected 0",
        ),
        ("awr.awr_temp=0.3", "awr.* has no effect with algorithm=ppo; expected algorithm=awr"),
        ("deepmimic.joint_err_w=[1]", "expected 12, for torso"),
    ],
)
def test_unsupported_arguments_are_a_one_line_error(
    argument: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments(tmp_path), *argument.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
