"""The whole path, small but real: clips -> a few updates -> publish -> controller -> HTTP."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from pretrain.ase.latents import SkillEnv
from pretrain.assembly import (
    SkillTraining,
    adapt,
    build_training,
    schedule_action_std,
    warm_up,
)
from pretrain.assist.aids import AssistedEnv
from pretrain.assist.curriculum import Curriculum
from pretrain.characters.state import unflatten
from pretrain.config import PretrainConfig
from pretrain.motion.fetch import fetched
from pretrain.overrides import load_config
from pretrain.rl import checkpoint
from pretrain.rl.background import use_one_thread
from pretrain.rl.run_folder import lock_run_folder
from pretrain.rl.training import Monitor, train_until
from pretrain.sim.features import proprioception
from pretrain.train import main, train, train_and_refine
from pretrain.training_aids import make_near_probs
from pretrain.training_data import load_training_data
from serving.client import Client
from skills_store import places
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests.server import running_service


def python(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, env=env
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with letters that mean something in Hydra's grammar, and with some outside ASCII."""
    folder = tmp_path_factory.mktemp("pipeline") / "Zoë=3, [日本]"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def skills(place) -> Store:
    """A toy library, trained and published by the command that users type."""
    where = (f"runs={place}/runs", f"store={place}/store")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    run = python("-m", "pretrain.train", "preset=toy", *where, env=environment)
    assert run.returncode == 0, run.stderr
    assert "published toy@1" in run.stdout
    return Store(place / "store")


@pytest.fixture(scope="module")
def controller(skills, place) -> Store:
    where = (f"runs={place}/runs", f"store={place}/store")
    run = python("-m", "hlc.train", "task=reach", "preset=toy", "skill=toy@latest", *where)
    assert run.returncode == 0, run.stderr
    return skills


def test_the_published_library_says_what_it_is(skills):
    manifest = skills.resolve("toy").manifest
    card = manifest.card
    assert 0 <= card["survival"] <= 1
    assert set(card["coverage_per_clip"]) == {
        clip.name for clip in manifest.lineage.clips if "mirror" not in clip.name
    }
    assert card["detail"]["survival"]["n"] == 32
    assert all(graph.parity.max_abs_error <= 1e-5 for graph in manifest.graphs.values())
    assert all(clip.licence for clip in manifest.lineage.clips)


def test_the_same_command_again_publishes_nothing(skills, place):
    run = python("-m", "pretrain.train", "preset=toy", f"runs={place}/runs", f"store={place}/store")
    assert run.returncode == 0, run.stderr
    assert "toy@1" in run.stdout
    assert "already" in run.stdout
    assert skills.latest("toy") == 1


def test_the_manifest_carries_no_place_of_the_machine_that_made_it(skills, place):
    assert str(place) not in skills.resolve("toy").manifest.model_dump_json()


def test_the_graphs_carry_no_path_of_the_machine_that_made_them(skills):
    version = skills.resolve("toy")
    for graph in version.manifest.graphs.values():
        data = skills.read(version, graph.file)
        assert b"site-packages" not in data
        assert str(Path.cwd()).encode() not in data


def test_the_published_policy_is_the_average_of_the_last_iterations(skills, place):
    cfg = toy()
    nets = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    ).nets
    (file,) = place.glob("runs/toy-*/checkpoint.pt")
    for name, net in nets.modules().items():
        net.load_state_dict(checkpoint.load(file)["nets"][name])
        net.eval()
    z = torch.nn.functional.normalize(
        torch.randn(4, cfg.latent.latent_dim, generator=torch.Generator().manual_seed(0))
    )
    states = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps).library.frames[
        :4
    ]
    targets = torch.from_numpy(
        SkillLibrary.open(skills, "toy@latest").act(states.numpy(), z.numpy())
    )
    with torch.no_grad():
        average, last = (
            nets.action_scale.target(policy({"obs": proprioception(unflatten(states)), "z": z}))
            for policy in (nets.average.module, nets.policy)
        )
    torch.testing.assert_close(targets, average, atol=1e-5, rtol=0)
    assert (targets - last).abs().max() > 1e-4


def test_acting_is_invariant_to_place_and_scale_of_z(skills):
    library = SkillLibrary.open(skills, "toy")
    state = np.zeros((1, 69), np.float32)
    state[0, 2:4] = 0.9, 1.0
    z = np.random.default_rng(0).normal(size=(1, library.latent_dim)).astype(np.float32)
    moved = state.copy()
    moved[0, :2] = 40, -7
    np.testing.assert_allclose(library.act(moved, z), library.act(state, z), atol=1e-5)
    np.testing.assert_allclose(library.act(state, 3 * z), library.act(state, z), atol=1e-5)


def test_evaluating_the_published_bytes_gives_the_published_card(skills):
    run = python(
        "-m",
        "pretrain.evaluate",
        "skill=toy",
        f"store={skills.root}",
        "episodes=32",
        "json=true",
        "out=",
    )
    assert run.returncode == 0, run.stderr
    card = skills.resolve("toy").manifest.card
    again = json.loads(run.stdout)
    assert again["survival"] == card["survival"]
    assert again["coverage_per_clip"] == card["coverage_per_clip"]
    # what it took and how it went, no evaluation can tell again
    assert again["cost"] == card["cost"]
    assert again["learning"] == card["learning"]
    assert again["learning"]["samples"][-1] == card["cost"]["samples"]
    assert len(again["learning"]["episode/length"]) == 4


def test_the_learning_curve_ends_at_the_published_card(skills, place):
    (run,) = place.glob("runs/toy-*")
    made = python("-m", "benchmarks.learning", str(run), f"out={place}/learning", "episodes=32")
    assert made.returncode == 0, made.stderr
    (row,) = map(json.loads, (run / "cards-32.jsonl").read_text().splitlines())
    card = skills.resolve("toy").manifest.card
    assert row["samples"] == card["cost"]["samples"]
    assert row["survival"] == card["survival"]
    assert row["time_on_clip"] == card["time_on_clip"]["mean"]
    assert row["push_500_newton"] == card["robustness"]["push_500_newton"]
    assert (place / "learning" / "learning.png").exists()


def test_everything_answers_over_http(controller):
    with running_service(controller.root) as url, Client(url) as client:
        row = np.zeros(69, np.float32)
        row[2:4] = 0.9, 1.0
        code = client.encode_file(fetched(places.clips()) / "humanoid3d_walk.txt", skill="toy")
        targets = client.act(row, code.pooled, skill="toy")
        assert targets.shape == (28,)
        library = SkillLibrary.open(controller, "toy")
        np.testing.assert_array_equal(targets, library.act(row[None], code.pooled[None])[0])
        decision = client.decide("reach", row, [1.0, 0.0, 1.0])
        assert np.linalg.norm(decision.z) == pytest.approx(1, abs=1e-5)
        assert httpx.get(f"{url}/controllers").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["preset=huge"], "Available options in 'preset': all ase everyday locomotion toy"),
        (["ppo.learning_rate=1"], "ppo.lr"),
        (["ppo.lr=0.01"], "ppo.lr: Input should be less than or equal to 0.001, got 0.01"),
        (["motions=swimming"], "locomotion"),
        (["character=dragon"], "humanoid"),
        (["engine=bullet"], "mujoco"),
        (["seed=many"], "seed"),
        (["refine.after=[2,1]"], "after [2, 1] does not rise"),
    ],
)
def test_a_wrong_configuration_is_one_line_that_lists_what_exists(
    arguments, said, capsys, tmp_path
):
    assert main(["preset=toy", f"runs={tmp_path}", f"store={tmp_path}/store", *arguments]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "Traceback" not in message


def test_a_number_that_no_reader_converts_is_one_line_with_file_and_frame(tmp_path, capsys):
    motion = json.loads((fetched(places.clips()) / "humanoid3d_walk.txt").read_text())
    motion["Frames"][7][3] = "HERE"
    (tmp_path / "long.txt").write_text(json.dumps(motion).replace('"HERE"', "9" * 5000))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: mine\nmotions: [{file: long.txt}]\n")
    assert (
        main(
            ["preset=toy", f"motions={recipe}", f"runs={tmp_path}/runs", f"store={tmp_path}/store"]
        )
        == 2
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        line == "ClipError: long.txt: frame 7 column 3 is inf, expected a finite number below 1e6"
    )


# what PRESET=all changes of the default
PHASE_LOCKED = (
    "tracking_termination.phase_locking=always",
    "latent.near_prob=1",
    *(f"imitation.{term}_weight=2" for term in ("reward", "cloning", "pose_gradient")),
)


def toy(*arguments: str) -> PretrainConfig:
    return load_config(PretrainConfig, "pretrain.conf", ["preset=toy", *arguments])


def weights(training) -> torch.Tensor:
    return torch.cat(
        [p.flatten() for net in training.nets.modules().values() for p in net.parameters()]
    )


@pytest.mark.parametrize(
    ("locking", "expected"),
    [("always", [True, True]), ("unassisted", [True, False]), ("never", [False, False])],
)
def test_termination_is_phase_locked_for_the_clips_that_the_setting_says(locking, expected):
    cfg = toy(f"tracking_termination.phase_locking={locking}")
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    env = training.env
    assert isinstance(env, AssistedEnv)
    assert env.termination.phase_locked[0] == (locking == "always")  # all are assisted at first
    env.curriculum.assist_strength[0] = 0.0
    env.step_schedule()
    assert env.termination.phase_locked[:2].tolist() == expected
    again = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    again.restore(training.snapshot())
    assert isinstance(again.env, AssistedEnv)
    assert torch.equal(again.env.termination.phase_locked, env.termination.phase_locked)


def test_the_action_std_falls_as_clips_are_mastered():
    ppo = toy("ppo.action_std=0.1", "ppo.action_std_final=0.025").ppo
    found = [schedule_action_std(ppo, progress) for progress in (0.0, 0.5, 1.0)]
    assert found == pytest.approx([0.1, 0.05, 0.025])


def test_a_store_that_cannot_be_opened_fails_before_training(tmp_path, capsys):
    assert main(["preset=toy", "store=ftp://x/y", f"runs={tmp_path}"]) == 2
    assert "ftp://x/y" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_clip_shorter_than_a_window_is_named():
    with pytest.raises(ValueError, match=r"walk\w* has \d+ frames; a style window needs 9999"):
        load_training_data("humanoid", "locomotion", 9999)


def test_a_signal_in_the_last_iteration_interrupts(tmp_path):
    cfg = toy("samples=512")
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )

    def interrupt(scalars):
        signal.raise_signal(signal.SIGTERM)
        return {}

    monitor = Monitor("pretrain", {}, checkpoint_interval=1e9)
    assert not train_until(training, 512, tmp_path, replace(monitor, on_iteration=interrupt))
    assert checkpoint.load(tmp_path / "checkpoint.pt")["samples"] == training.samples == 512
    assert train_until(training, 512, tmp_path, monitor)


@pytest.mark.parametrize(("near_steps", "share"), [("150", 0.2), ("301", 0.8), ("null", 0.8)])
def test_latents_lie_near_a_clip_until_its_losses_lie_so_far_apart(near_steps, share):
    cfg = toy(f"latent.near_steps={near_steps}", "latent.near_prob=0.8", "latent.near_after=0.25")
    # not assisted, and no loss in 300 steps
    curriculum = Curriculum(torch.tensor([0.5, 0.5]), episode_length=300)
    torch.testing.assert_close(make_near_probs(cfg, curriculum)(), torch.full((2,), share))


SMALL = (
    *(
        "num_envs=64",
        "warm.encoder_steps=20",
        "warm.clone_steps=20",
        "warm.batch=64",
        "disc.disc_buffer_size=2_000",
        "disc.disc_replay_samples=128",
    ),
    *(f"{part}.{size}" for part in ("disc", "enc") for size in ("rows=256", "minibatch=256")),
    *(f"{part}=[32]" for part in ("ppo.hidden", "ppo.value_hidden", "disc.hidden", "enc.hidden")),
)


def test_each_network_is_as_wide_as_its_own_setting_says():
    widths = {"ppo.hidden": 8, "ppo.value_hidden": 12, "disc.hidden": 16, "enc.hidden": 20}
    cfg = toy(*(f"{name}=[{width}]" for name, width in widths.items()))
    nets = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    ).nets
    bodies = (nets.policy.body, nets.value.body, nets.discriminator.body, nets.encoder.body)
    assert [body[0].out_features for body in bodies] == list(widths.values())


@pytest.mark.parametrize("preset", ["everyday", "all"])
def test_a_preset_learns_at_its_beginning_and_when_all_its_schedules_have_run_out(preset, tmp_path):
    iteration = 64 * 8
    cfg = load_config(PretrainConfig, "pretrain.conf", [f"preset={preset}", *SMALL])
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, training_data)
    warm_up(cfg, training_data, training)
    first = weights(training)
    assert train(cfg.model_copy(update={"samples": 2 * iteration}), training, tmp_path)
    env = training.env
    assert isinstance(env, AssistedEnv)
    early = weights(training)
    env.curriculum.assist_strength.zero_()
    env.curriculum.progress.fill_(1.0)
    assert train(cfg.model_copy(update={"samples": 4 * iteration}), training, tmp_path)
    for before, after in ((first, early), (early, weights(training))):
        assert after.isfinite().all()
        assert not torch.equal(before, after)
    rows = [json.loads(row) for row in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(np.isfinite(list(row.values())).all() for row in rows)
    assert rows[-1]["action_std"] < 0.5 * rows[0]["action_std"]
    assert env.termination.phase_locked.all()


def test_the_preset_ase_learns_with_a_constant_rate_and_no_aids(tmp_path):
    small = (*SMALL, "num_disc_obs_steps=3", "ppo.horizon=8", "ppo.minibatch=256")
    cfg = load_config(PretrainConfig, "pretrain.conf", ["preset=ase", *small])
    training = build_training(cfg, load_training_data("humanoid", cfg.motions, 3))
    assert isinstance(training.env, SkillEnv)
    assert not training.nets.discriminator.conditional
    warm_up(cfg, load_training_data("humanoid", cfg.motions, 3), training)
    assert train(cfg.model_copy(update={"samples": 2 * 64 * 8}), training, tmp_path)
    rows = [json.loads(row) for row in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert {row["policy/lr"] for row in rows} == {2e-5}
    assert all(row["reward/skill"] >= 0 for row in rows)
    assert "assist" not in rows[-1]


def test_without_the_aids_plain_ase_learns_and_resumes_bit_for_bit(tmp_path):
    cfg = toy(
        "assist=none",
        "tracking_termination.phase_locking=always",
        "imitation.reward_weight=1",
        "imitation.cloning_weight=1",
    )
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    whole = build_training(cfg, training_data)
    other = build_training(cfg, training_data)
    assert isinstance(whole.env, SkillEnv)
    assert set(whole.objective.rewards) == {"style", "skill"}
    assert set(whole.env.observe()) == set(whole.nets.value.inputs.names) == {"obs", "z"}
    iteration = cfg.num_envs * cfg.ppo.horizon
    assert train(cfg.model_copy(update={"samples": 2 * iteration}), whole, tmp_path)
    assert other.resume(tmp_path, 4 * iteration)
    adapt(cfg, other)
    for training in (whole, other):
        with use_one_thread():
            training.iterate()
        training.background.finish()
    assert torch.equal(weights(whole), weights(other))


def test_refinement_without_the_aids_is_refused():
    with pytest.raises(ValueError, match=r"refine\.correct 512 needs assist=full"):
        toy("assist=none", "refine.correct=512")


@pytest.fixture
def rising(tmp_path) -> str:
    """A recipe of a walk and of getting up, neither mirrored."""
    recipe = tmp_path / "rising.yaml"
    files = "".join(
        f'  - {{file: "pybullet:humanoid3d_{name}.txt"}}\n' for name in ("walk", "getup_faceup")
    )
    recipe.write_text(f"name: rising\nmirror: false\nmotions:\n{files}")
    return str(recipe)


def test_getting_up_is_trained_where_a_clip_shows_it_and_is_on_the_card(rising, tmp_path, capsys):
    where = (f"runs={tmp_path}/runs", f"store={tmp_path}/store")
    lying = ("recovery.protected_prob=0.2", "recovery.lying_prob=0.5", "eval.episodes=16")
    assert main(["preset=toy", f"motions={rising}", *PHASE_LOCKED, *lying, *where]) == 0, (
        capsys.readouterr().err
    )
    row = json.loads(next((tmp_path / "runs").glob("*/metrics.jsonl")).read_text().splitlines()[-1])
    assert 0 < row["reward/getup"] < 1
    assert 0 < row["policy/pose_error"] < 1
    assert 0 < row["down"] < 1
    card = Store(tmp_path / "store").resolve("toy").manifest.card
    # a character that falls at once still has three seconds
    assert card["survival"] * card["detail"]["episode_steps"] >= 90
    assert set(card["survival_per_clip"]) == {"walk", "getup_faceup"}
    assert any(THIN in line for line in card["caveats"])
    assert any(line.startswith("16 episodes, fewer than ") for line in card["caveats"])


THIN = "too little for skills that differ"


def test_one_clip_is_a_library_too_whose_card_says_how_little_it_is(tmp_path, capsys):
    recipe = tmp_path / "one.yaml"
    where = (f"runs={tmp_path}/runs", f"store={tmp_path}/store")
    recipe.write_text(
        'name: one\nmirror: false\nmotions:\n  - {file: "pybullet:humanoid3d_walk.txt"}\n'
    )
    little = ("samples=512", "eval.episodes=8", "threads=1", *SMALL)
    assert main(["preset=toy", f"motions={recipe}", *little, *where]) == 0, capsys.readouterr().err
    manifest = Store(tmp_path / "store").resolve("toy").manifest
    assert [clip.name for clip in manifest.lineage.clips] == list(manifest.latent.clips) == ["walk"]
    (said,) = (line for line in manifest.card["caveats"] if THIN in line)
    assert said.startswith("1 clip(s), 1.3 s")
    assert set(manifest.card["time_on_clip"]["per_clip"]) == {"walk"}
    assert manifest.card["switch_success"] == {
        "mean": None,
        "matrix": {},
    }  # there is nothing to switch to


def learned(folder: Path) -> list[dict[str, float]]:
    """What a run has logged, but for how long it took."""
    rows = [json.loads(row) for row in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: x for key, x in row.items() if not key.startswith(("time/", "seconds"))}
        for row in rows
    ]


@pytest.mark.parametrize("getting_up", [False, True])
def test_a_resumed_run_ends_in_the_same_bits(tmp_path, rising, getting_up):
    cfg = toy("samples=4096", *((f"motions={rising}", *PHASE_LOCKED) if getting_up else ()))
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    whole = build_training(cfg, training_data)
    warm_up(cfg, training_data, whole)
    assert train(cfg, whole, tmp_path / "whole")
    half = build_training(cfg, training_data)
    warm_up(cfg, training_data, half)
    assert train(cfg.model_copy(update={"samples": 2048}), half, tmp_path / "parts")
    resumed = build_training(cfg, training_data)
    resumed.restore(checkpoint.load(tmp_path / "parts" / "checkpoint.pt"))
    assert train(cfg, resumed, tmp_path / "parts")
    assert torch.equal(weights(resumed), weights(whole))
    parts, all_at_once = (learned(tmp_path / name) for name in ("parts", "whole"))
    assert [row["iteration"] for row in parts] == list(range(1, 9))
    assert parts == all_at_once


def refined(cfg: PretrainConfig, folder: Path) -> SkillTraining:
    """A run of `cfg` in `folder`, from its first sample or from where it was."""
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, training_data)
    if not training.resume(folder, cfg.samples):
        warm_up(cfg, training_data, training)
    assert train_and_refine(cfg, training_data, training, folder)
    return training


def test_a_run_refined_on_its_way_and_interrupted_after_that_ends_in_the_same_bits(
    tmp_path, rising
):
    how = (
        f"motions={rising}",
        *PHASE_LOCKED,
        "refine.correct=1024",
        "refine.learn=1024",
        "refine.after=[1024]",
    )
    whole = refined(toy("samples=2048", *how), tmp_path / "whole")
    refined(toy("samples=1536", *how), tmp_path / "parts")
    parts = refined(toy("samples=2048", *how), tmp_path / "parts")
    assert torch.equal(weights(parts), weights(whole))
    (last,) = (tmp_path / "whole").glob("refine/*2048/checkpoint.pt")
    learned = checkpoint.load(last)["policy"]
    assert all(
        torch.equal(x, learned[name]) for name, x in whole.nets.average.module.state_dict().items()
    )
    rows = [json.loads(row) for row in (last.parent / "metrics.jsonl").read_text().splitlines()]
    assert [row["corrections"] > 0 for row in rows] == [False, True, True, True]
    assert ["refine/loss" in row for row in rows] == [False, False, True, True]
    first, second = map(checkpoint.load, sorted((tmp_path / "whole" / "milestones").iterdir()))
    assert (first["samples"], second["samples"]) == (1024 + 2048, 2048 + 2 * 2048)
    assert 0 < first["seconds"] < second["seconds"] == whole.seconds
    assert torch.equal(second["nets"]["average"]["module.body.0.weight"], learned["body.0.weight"])


def test_fewer_samples_than_a_run_has_taken_are_refused(tmp_path):
    refined(toy("samples=2048"), tmp_path)
    with pytest.raises(ValueError, match=r"samples=1024: .* has taken 2,048 samples already"):
        refined(toy("samples=1024"), tmp_path)


def test_a_run_whose_refinement_comes_after_its_end_is_refined_at_its_end(tmp_path, rising):
    cfg = toy(
        "samples=1024",
        f"motions={rising}",
        "refine.correct=512",
        "refine.learn=512",
        "refine.after=[4096]",
    )
    refined(cfg, tmp_path)
    assert [place.name for place in (tmp_path / "refine").iterdir()] == ["000000001024"]


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A toy run in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "pretrain.train",
        "preset=toy",
        "publish=false",
        f"runs={folder}",
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def begun(folder: Path, *arguments: str, label: str = "pretrain") -> subprocess.Popen[str]:
    """A toy run in a process of its own, up to its first line of progress in the stage of that
    label."""
    process = started(folder, *arguments)
    assert process.stdout is not None
    for line in process.stdout:
        if "left" in line and line.startswith(label):
            break
    return process


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and the rest of what it said."""
    rest, _ = process.communicate(timeout=120)
    return process.returncode, rest


def saved(folder: Path) -> dict[str, torch.Tensor]:
    (file,) = folder.glob("*/checkpoint.pt")
    nets = checkpoint.load(file)["nets"]
    return {f"{net}.{key}": x for net, state in nets.items() for key, x in state.items()}


# refined once on its way and once at its end, and saved after every iteration
KILLED = (
    *(
        "samples=4096",
        "refine.correct=1024",
        "refine.learn=1024",
        "refine.after=[2048]",
        "checkpoint_interval=1e-3",
    ),
    *("threads=1", "warm.encoder_steps=20", "warm.clone_steps=20"),
)
MOMENTS = {
    "metrics.jsonl": "before its first checkpoint",
    "checkpoint.tmp": "as it saves",
    "refine/*2048/metrics.jsonl": "as it begins to refine",
    "refine/*2048/checkpoint.pt": "amid refining",
    "milestones/*2048.pt": "refined, before training goes on",
}


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("never_killed")
    assert ended(started(folder, *KILLED))[0] == 0
    return folder


def written_since(start: float, files: Iterable[Path]) -> bool:
    with suppress(FileNotFoundError):  # renamed meanwhile
        return any(file.stat().st_mtime >= start for file in files)
    return True


def left(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, list[dict[str, float]]]]:
    """All that a run has in the end, but for how long it took: networks by file and name, and
    logs."""
    (run,) = folder.iterdir()
    nets: dict[str, torch.Tensor] = {}
    for file in sorted(run.rglob("*.pt")):
        tree = checkpoint.load(file)
        for net, state in (tree.get("nets") or {"policy": tree["policy"]}).items():
            nets |= {f"{file.relative_to(run)}.{net}.{key}": x for key, x in state.items()}
    return nets, {
        str(log.parent.relative_to(run)): learned(log.parent) for log in run.rglob("metrics.jsonl")
    }


def assert_the_same_is_left(folder: Path, other: Path) -> None:
    (nets, logs) = left(folder)
    (other_nets, other_logs) = left(other)
    assert nets.keys() == other_nets.keys()
    assert [key for key in nets if not torch.equal(nets[key], other_nets[key])] == []
    assert logs == other_logs


def test_a_run_killed_at_one_moment_after_the_other_ends_in_the_same_bits(never_killed, tmp_path):
    for sign, moment in MOMENTS.items():
        start = time.time()
        process = started(tmp_path, *KILLED)
        while process.poll() is None and not written_since(start, tmp_path.glob(f"*/{sign}")):
            time.sleep(0.002)
        process.kill()  # no warning, wherever it stands
        assert ended(process)[0] == -signal.SIGKILL, f"it was not killed {moment}"
    assert ended(started(tmp_path, *KILLED))[0] == 0
    assert_the_same_is_left(tmp_path, never_killed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_killed_again_and_again_ends_in_the_same_bits(never_killed, tmp_path, seed):
    draw = random.Random(seed)
    kills = 0
    while True:
        process = started(tmp_path, *KILLED)
        with suppress(subprocess.TimeoutExpired):
            # longer from time to time: otherwise a slow machine would never get further than its
            # imports
            process.wait(draw.uniform(0, 4 + kills))
        process.kill()
        if ended(process)[0] == 0:
            break
        kills += 1
    assert kills > 3
    assert_the_same_is_left(tmp_path, never_killed)


AMID_TRAINING = ("samples=400_000",)
AMID_REFINING = ("samples=512", "refine.correct=2048", "refine.learn=400_000")


@pytest.mark.parametrize(
    ("label", "arguments"), [("pretrain", AMID_TRAINING), ("refine", AMID_REFINING)]
)
def test_sigterm_saves_at_once(tmp_path, label, arguments):
    process = begun(tmp_path, *arguments, label=label)
    start = time.monotonic()
    process.terminate()
    status, rest = ended(process)
    assert time.monotonic() - start < 2
    assert status == 130
    assert "the same command goes on" in rest
    assert saved(tmp_path)
    for file in tmp_path.glob("*/refine/*/checkpoint.pt"):
        assert 0 < checkpoint.load(file)["samples"] < 402_048
    assert bool(list(tmp_path.glob("*/refine"))) == (label == "refine")


@pytest.mark.parametrize(
    ("most", "unwritten"),
    [(1000, r"config\.json"), (4000, r"metrics\.jsonl"), (100_000, r"checkpoint\.pt")],
)
def test_a_full_disk_is_one_line_that_names_the_file_and_the_same_command_goes_on(
    tmp_path, most, unwritten
):
    """A real short write: the kernel takes `most` bytes of a file, and then no more."""
    warm = ("warm.encoder_steps=1", "warm.clone_steps=1")
    how = ["preset=toy", "publish=false", "samples=2048", *warm, f"runs={tmp_path}", "threads=1"]
    filled = subprocess.run(
        [sys.executable, "-m", "pretrain.train", *how],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert filled.returncode == 2
    (line,) = filled.stderr.splitlines()
    assert re.match(rf"OSError: .*{unwritten}\b.*(File too large|the disk may be full)", line)
    (folder,) = tmp_path.iterdir()
    assert {file.name for file in folder.iterdir()} <= {
        "config.json",
        "lock",
        "metrics.jsonl",
        "tensorboard",
    }
    assert main(how) == 0
    assert [row["iteration"] for row in learned(folder)] == [1, 2, 3, 4]


def test_the_same_run_is_not_trained_twice_at_once(tmp_path, capsys):
    how = ["preset=toy", "publish=false", f"runs={tmp_path}"]
    assert main([*how, "samples=512"]) == 0
    (folder,) = tmp_path.iterdir()
    with lock_run_folder(folder, toy()):
        assert main([*how, "samples=1024"]) == 2
        assert "another process trains there" in capsys.readouterr().err
    assert main([*how, "samples=1024"]) == 0


def test_a_checkpoint_of_something_else_is_named(tmp_path):
    checkpoint.save(tmp_path / "checkpoint.pt", {"weights": 1})
    cfg = toy()
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    with pytest.raises(
        ValueError, match=r"checkpoint\.pt is no checkpoint of this run: KeyError\('nets'\)"
    ):
        training.resume(tmp_path, cfg.samples)


def test_a_checkpoint_of_other_layers_is_named(tmp_path):
    made, other = (
        build_training(cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps))
        for cfg in (toy("disc.hidden=[32,32]"), toy())
    )
    checkpoint.save(tmp_path / "checkpoint.pt", made.snapshot())
    with pytest.raises(
        ValueError,
        match=r"checkpoint\.pt is no checkpoint of this run: its layers or worlds are not .*, "
        "the run begins anew$",
    ):
        other.resume(tmp_path, 2048)


def test_only_clips_that_rise_have_a_getup_assistance(rising):
    cfg = toy(f"motions={rising}")
    env = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    ).env
    assert isinstance(env, AssistedEnv)
    assert set(env.getup.strength.tolist()) == {0.0, cfg.recovery.getup_start}


def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path):
    process = begun(tmp_path, "samples=400_000")
    process.send_signal(signal.SIGINT)
    status, rest = ended(process)
    assert status == 130
    assert "the same command goes on" in rest
    (file,) = tmp_path.glob("*/checkpoint.pt")
    done = checkpoint.load(file)["samples"]
    assert ended(begun(tmp_path, f"samples={done + 1024}"))[0] == 0
    assert checkpoint.load(file)["samples"] == done + 1024
