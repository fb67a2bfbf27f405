"""The training loop, on an environment whose optimum is known."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import IO, Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pretrain.rl import checkpoint
from pretrain.rl.adam import Adam
from pretrain.rl.iteration import LoopConfig, Objective, bootstrap_values, stack_rewards
from pretrain.rl.learner import Diverged, Learner
from pretrain.rl.nets import GaussianPolicy, Inputs, Normalizer, Value, make_unit_normalizer, mlp
from pretrain.rl.ppo import FOR_POLICY, FOR_VALUE, clipped_surrogate, policy_loss, value_loss
from pretrain.rl.rollout import Batch, Noise, Rollout, Step, collect_steps, concatenate
from pretrain.rl.run_folder import Log
from pretrain.rl.training import Monitor, Training, train_until
from tests.rl.nan_loss import spoil_value_loss
from tests.skills_store.full import files_of_at_most


class Track:
    """N points on a line, pushed by the action; the reward is highest at 0. Leaving [-3, 3] is a
    fall."""

    num_envs = 64

    def __init__(self, seed: int = 0):
        self.rng = torch.Generator().manual_seed(seed)
        self.x = torch.zeros(self.num_envs, 1)
        self.age = torch.zeros(self.num_envs)
        self.reset(torch.arange(self.num_envs))

    def reset(self, ids: torch.Tensor) -> None:
        self.x[ids] = 4 * torch.rand(len(ids), 1, generator=self.rng) - 2
        self.age[ids] = 0

    def observe(self, ids: torch.Tensor | None = None) -> Batch:
        return {"obs": self.x.clone() if ids is None else self.x[ids]}

    def step(self, action: torch.Tensor) -> Step:
        self.x = self.x + 0.3 * action.clamp(-1, 1)
        self.age += 1
        fell = self.x.abs().squeeze(-1) > 3
        reward = torch.exp(-self.x.square().squeeze(-1))
        return Step(
            self.observe(), reward, fell, ~fell & (self.age >= 40), {"seen": self.x.clone()}
        )


def parts(
    seed: int = 0, num_values: int = 1
) -> tuple[GaussianPolicy, Value, Objective, torch.Generator]:
    rng = torch.Generator().manual_seed(seed)
    policy = GaussianPolicy(
        Inputs({"obs": make_unit_normalizer(1)}), mlp([1, 32, 1], last_scale=0.1, rng=rng), 0.3
    )
    body = mlp([1, 32, num_values], rng=rng)
    value = Value(Inputs({"obs": make_unit_normalizer(1)}), body, num_values)
    objective = Objective(
        {},
        Learner(
            "policy",
            ("obs", *FOR_POLICY),
            policy_loss(policy, clipped_surrogate(policy, 0.2, 2.0, 0.1)),
            Adam(policy.parameters(), 3e-3),
            4,
            256,
        ),
        Learner(
            "value",
            ("obs", *FOR_VALUE),
            value_loss(value),
            Adam(value.parameters(), 3e-3),
            4,
            256,
        ),
    )
    return policy, value, objective, rng


@dataclass(frozen=True)
class TrackNets:
    policy: GaussianPolicy
    value: Value

    def modules(self) -> dict[str, torch.nn.Module]:
        return {}


class SavedTrack(Track):
    """Its state is not part of these tests."""

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, tree: dict[str, Any], /) -> None:
        pass


SHORT = LoopConfig(8, 0.9, 0.9)


def make_training(
    change: Callable[[Objective], Objective] = lambda objective: objective,
    cfg: LoopConfig = SHORT,
    num_values: int = 1,
) -> Training[TrackNets, SavedTrack]:
    policy, value, objective, rng = parts(num_values=num_values)
    noise = Noise(0.0, torch.zeros(64, 1))
    return Training(TrackNets(policy, value), SavedTrack(), change(objective), cfg, noise, rng)


MONITOR = Monitor("x", {}, checkpoint_interval=1e9)


def test_training_increases_the_reward():
    training = make_training(cfg=LoopConfig(16, 0.95, 0.95, env_reward_weight=1.0))
    rewards = [training.iterate()["reward/env"] for _ in range(30)]
    assert rewards[0] < 0.6
    assert rewards[-1] > 0.8


@pytest.mark.parametrize("critics", ["separate", "normalized"])
def test_training_with_separate_critics_increases_the_reward(critics):
    def left(rollout: Rollout) -> torch.Tensor:
        return 100 * (rollout.extras["seen"].squeeze(-1) < 0).float()

    cfg = LoopConfig(16, 0.95, 0.95, env_reward_weight=1.0, critics=critics)
    training = make_training(
        lambda objective: replace(objective, rewards={"left": (1e-4, left)}), cfg, num_values=2
    )
    rewards = [training.iterate() for _ in range(30)]
    assert rewards[0]["reward/env"] < 0.6
    assert rewards[-1]["reward/env"] > 0.8


def test_a_held_policy_stays_while_the_value_net_learns():
    training = make_training(cfg=LoopConfig(8, 0.9, 0.9, held_samples=2 * 8 * 64))
    policy, value = training.nets.policy.body, training.nets.value.body
    before = deepcopy(policy), deepcopy(value)

    def moved(net: torch.nn.Module, start: torch.nn.Module) -> bool:
        pairs = zip(net.parameters(), start.parameters(), strict=True)
        return any(not torch.equal(now, then) for now, then in pairs)

    for _ in range(2):
        training.iterate()
    training.background.finish_fits()
    assert not moved(policy, before[0])
    assert moved(value, before[1])
    training.iterate()
    assert moved(policy, before[0])


def collect(env: Track, policy: GaussianPolicy, rng: torch.Generator) -> Rollout:
    """60 steps of 64 worlds."""
    noise = Noise(0.0, torch.zeros(64, 1))
    return concatenate(list(collect_steps(env, policy, noise, 60, rng)))


def test_next_obs_is_the_true_next_obs_at_episode_ends():
    policy, _, _, rng = parts()
    rollout = collect(Track(), policy, rng)
    ended = rollout.truncated | rollout.terminated
    assert ended.any()
    torch.testing.assert_close(rollout.next_obs["obs"], rollout.extras["seen"])
    going_on = ~ended[:-1]
    torch.testing.assert_close(
        rollout.obs["obs"][1:][going_on], rollout.next_obs["obs"][:-1][going_on]
    )


def test_bootstrap_values_are_those_of_the_true_next_observations():
    policy, value, _, rng = parts()
    rollout = collect(Track(), policy, rng)
    assert rollout.truncated.any()
    assert rollout.terminated.any()
    there = bootstrap_values(rollout, value.predict(rollout.obs), value)
    counts = ~rollout.terminated
    torch.testing.assert_close(there[counts], value.predict(rollout.next_obs)[counts])


def test_a_world_that_failed_and_continues_is_not_reset():
    class NeverReset(Track):
        def step(self, action: torch.Tensor) -> Step:
            return replace(
                super().step(action), resets=torch.zeros(self.num_envs, dtype=torch.bool)
            )

    policy, *_, rng = parts()
    rollout = collect(NeverReset(), policy, rng)
    assert (rollout.terminated | rollout.truncated).any()
    assert not rollout.resets.any()
    assert torch.equal(rollout.obs["obs"][1:], rollout.next_obs["obs"][:-1])


def test_a_joint_critic_predicts_the_weighted_sum(rng):
    env, two, unused = torch.rand(3, 4, 5, generator=rng)
    rewards = {"env": env, "two": two, "unused": unused}
    stacked = stack_rewards(rewards, {"env": 3.0, "two": 0.5, "unused": 0.0}, "joint")
    torch.testing.assert_close(stacked.reward, (3.0 * env + 0.5 * two)[..., None])
    torch.testing.assert_close(stacked.weight, torch.ones(1))


@pytest.mark.parametrize("critics", ["separate", "normalized"])
def test_separate_critics_predict_each_weighted_reward(rng, critics):
    env, two, unused = torch.rand(3, 4, 5, generator=rng)
    rewards = {"env": env, "two": two, "unused": unused}
    stacked = stack_rewards(rewards, {"env": 3.0, "two": 0.5, "unused": 0.0}, critics)
    torch.testing.assert_close(stacked.reward, torch.stack([env, two], -1))
    torch.testing.assert_close(stacked.weight, torch.tensor([3.0, 0.5]))


def test_reward_terms_are_logged_unweighted():
    def two(rollout: Rollout) -> torch.Tensor:
        return torch.full_like(rollout.reward, 2.0)

    training = make_training(lambda objective: replace(objective, rewards={"two": (0.5, two)}))
    scalars = training.iterate()
    assert scalars["reward/two"] == 2.0
    assert 0 < scalars["reward/env"] < 1


def test_diverged_run_reports_samples_and_keeps_checkpoint(tmp_path):
    def nan(rollout: Rollout) -> torch.Tensor:
        return torch.full_like(rollout.reward, float("nan"))

    training = make_training(lambda objective: replace(objective, rewards={"bad": (1.0, nan)}))
    with pytest.raises(Diverged, match="after 0 samples: the run stops; it had saved nothing yet"):
        train_until(training, 1024, tmp_path, MONITOR)
    (tmp_path / "checkpoint.pt").write_bytes(b"good")
    with pytest.raises(Diverged, match=r"checkpoint\.pt is as it was before"):
        train_until(training, 1024, tmp_path, MONITOR)
    assert (tmp_path / "checkpoint.pt").read_bytes() == b"good"


def test_divergence_in_last_iteration_keeps_checkpoint(tmp_path):
    training = make_training(spoil_value_loss)
    (tmp_path / "checkpoint.pt").write_bytes(b"good")
    with pytest.raises(
        Diverged,
        match=r"value: 8 of its 8 gradient steps were not finite after 512 samples: the run stops; "
        r".*as it was before",
    ):
        train_until(training, 512, tmp_path, MONITOR)
    assert (tmp_path / "checkpoint.pt").read_bytes() == b"good"


def test_skipped_gradient_step_is_reported_on_stderr(tmp_path, capsys):
    steps = iter(range(100))

    def spoil_once(objective: Objective) -> Objective:
        def loss(batch: Batch, rng: torch.Generator):
            total, metrics = objective.value.loss(batch, rng)
            # in the second iteration, of 8 steps
            return total * (torch.nan if next(steps) == 9 else 1.0), metrics

        return replace(objective, value=replace(objective.value, loss=loss))

    training = make_training(spoil_once)
    assert train_until(training, 3 * 512, tmp_path, MONITOR)
    assert capsys.readouterr().err == "after 1,024 samples: value/skipped 1, gradient not finite\n"


def test_colored_noise_has_unit_std_and_given_autocorrelation(rng):
    noise = Noise.begin(0.8, 20_000, 1, rng)
    first = noise.draw(rng)
    second = noise.draw(rng)
    assert first.std() == pytest.approx(1, abs=0.03)
    assert second.std() == pytest.approx(1, abs=0.03)
    assert (first * second).mean() == pytest.approx(0.8, abs=0.03)


def test_running_normalizer_matches_statistics_of_all_data(rng):
    data = 3 + 2 * torch.randn(500, 4, generator=rng)
    norm = make_unit_normalizer(4)
    for chunk in data.split(70):
        norm.update(chunk)
    torch.testing.assert_close(norm.mean, data.mean(0), atol=1e-4, rtol=0)
    torch.testing.assert_close(norm.std, data.std(0, correction=0), atol=1e-4, rtol=0)
    assert norm(torch.full((1, 4), 1e9)).max() == norm.clip


def test_a_fixed_normalizer_clips():
    norm = Normalizer(torch.zeros(1), torch.ones(1), clip=2.0)
    assert norm(torch.tensor([[5.0]])) == 2.0


def test_a_failed_write_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"x": torch.ones(3), "n": 7})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="the last one there is intact"):
        checkpoint.save(path, {"x": torch.zeros(3), "n": 8})
    assert checkpoint.load(path)["n"] == 7
    assert list(tmp_path.iterdir()) == [path]


def test_full_disk_during_save_leaves_no_partial_file(tmp_path, monkeypatch):
    def full(tree: object, file: IO[bytes]) -> None:
        file.write(b"half of it")
        raise RuntimeError(
            "[enforce fail at inline_container.cc:672] . unexpected pos 472320 vs 472212"
        )

    monkeypatch.setattr("torch.save", full)
    with pytest.raises(OSError, match="the disk may be full"):
        checkpoint.save(tmp_path / "checkpoint.pt", {"n": 8})
    assert not list(tmp_path.iterdir())


def test_truncated_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    checkpoint.save(path, {"x": torch.ones(300)})
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(ValueError, match=r"checkpoint\.pt is no checkpoint"):
        checkpoint.load(path)


def test_a_resumed_log_has_no_row_twice(tmp_path):
    log = Log(tmp_path, 0)
    for i in range(1, 6):
        log.write(i, {"x": float(i)})
    log.close()
    resumed = Log(tmp_path, 3)
    resumed.write(4, {"x": 40.0})
    resumed.close()
    rows = [json.loads(row) for row in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    assert rows[-1]["x"] == 40.0


@pytest.mark.parametrize(("most", "unwritten"), [(20, r"metrics\.jsonl"), (100, r"events\.out\S*")])
def test_failed_log_write_names_the_file(tmp_path, capfd, most, unwritten):
    message = (
        rf"log not written to .*{unwritten}: File too large; "
        "the last checkpoint beside it is as it was"
    )
    with (
        files_of_at_most(most),
        closing(Log(tmp_path, 0)) as log,
        pytest.raises(OSError, match=message),
    ):
        log.write(1, {"x": 1.0})
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("later", [60, -3600])
def test_tensorboard_log_of_a_resumed_run_ignores_clock_shifts(tmp_path, monkeypatch, later):
    now = time.time_ns()
    for resume_at, written in ((0, {1: 1.0, 2: 2.0, 3: 3.0}), (1, {2: 20.0, 3: 30.0})):
        started = now + resume_at * later * 10**9
        monkeypatch.setattr("pretrain.rl.event_file.time.time_ns", lambda started=started: started)
        with closing(Log(tmp_path, resume_at)) as log:
            for i, x in written.items():
                log.write(i, {"x": x})
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("x")] == [
        (1, 1.0),
        (2, 20.0),
        (3, 30.0),
    ]
