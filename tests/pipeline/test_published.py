"""The whole path, small but real: clips -> a few updates -> publish -> controller -> HTTP."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch

from benchmarks import learning
from pretrain.assembly import build_training, set_action_std, warm_up
from pretrain.characters.state import unflatten
from pretrain.evaluation.card import Card
from pretrain.evaluation.conditions import Conditions
from pretrain.motion.fetch import fetched
from pretrain.parent import find_parent
from pretrain.publishing.publish import state_cost, take_trained
from pretrain.rl import checkpoint
from pretrain.rl.training import CHECKPOINT
from pretrain.sim.features import proprioception, style_frame
from pretrain.train import main
from pretrain.training_data import TrainingData, load_training_data
from serving.client import Client
from skills_store import places
from skills_store.runtime.library import SkillLibrary
from skills_store.store import Store
from tests.pipeline.small import learned, python, toy
from tests.server import running_service


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder whose name has characters of Hydra's grammar and non-ASCII ones."""
    folder = tmp_path_factory.mktemp("pipeline") / "Zoë=3, [日本]"
    folder.mkdir()
    return folder


# `python -m pretrain.train` on a machine whose disk is full when the card is measured.
FULL_AT_THE_CARD = """
import errno
import sys
from pretrain.publishing import export, publish
from pretrain.train import main
from tests.pipeline import random_graphs

def measure(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

publish.skill_card = measure
export.export = random_graphs.export
export.check_parity = random_graphs.check_parity
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Unpublished:
    """A run that was trained and failed at its card."""

    run: subprocess.CompletedProcess[str]
    names: Sequence[str]  # in its store at that time
    rows: list[dict[str, float]]  # of its log
    checkpoint: bytes


@pytest.fixture(scope="module")
def unpublished(place) -> Unpublished:
    where = (f"runs={place}/runs", f"store={place}/store")
    run = python("-c", FULL_AT_THE_CARD, "preset=toy", *where)
    (folder,) = place.glob("runs/toy-*")
    store = Store(place / "store")
    return Unpublished(run, store.names(), learned(folder), (folder / CHECKPOINT).read_bytes())


@pytest.fixture(scope="module")
def skills(place, unpublished) -> Store:
    """A toy library, published from the command line after a run that failed at its card."""
    where = (f"runs={place}/runs", f"store={place}/store")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    run = python("-m", "pretrain.train", "preset=toy", *where, env=environment)
    assert run.returncode == 0, run.stderr
    assert "published toy@1" in run.stdout
    return Store(place / "store")


@pytest.fixture(scope="module")
def controller(skills, place) -> Store:
    where = (f"runs={place}/runs", f"store={place}/store")
    how = ("task=reach", "preset=toy", "skill=toy@latest", "episode_length=2.0", *where)
    run = python("-m", "hlc.train", *how)
    assert run.returncode == 0, run.stderr
    return skills


def test_training_goes_on_from_a_published_library(skills, place):
    cfg = toy("name=next", "warm.library=toy@1").model_copy(update={"store": f"{place}/store"})
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    warm_up(cfg, data, training)
    library = SkillLibrary.open(skills, "toy@1")
    states = data.library.frames[::9]
    latents = training.nets.encoder.clip_latents
    z = latents[torch.arange(len(states)) % len(latents)]
    with torch.no_grad():
        obs = {"obs": proprioception(unflatten(states)), "z": z}
        targets = training.nets.action_scale.target(training.nets.policy(obs))
    np.testing.assert_allclose(targets, library.act(states, z), atol=1e-4)
    published = library.version.manifest.latent.clips
    for name, latent in zip(data.library.names, latents, strict=True):
        np.testing.assert_allclose(latent, published[name], atol=1e-5)
    windows = states[: 3 * (len(states) // 3)].view(-1, 3, states.shape[-1])
    frames = style_frame(data.character.skeleton, unflatten(windows)).flatten(1)
    with torch.no_grad():
        np.testing.assert_allclose(
            training.nets.encoder(frames), library.encode(windows), atol=1e-4
        )
    assert training.env.curriculum.assist_strength.max() == 0
    set_action_std(cfg, training)
    assert training.nets.policy.std == pytest.approx(cfg.ppo.action_std_final)


def test_warm_start_assists_only_clips_new_to_the_library(skills, place):
    more = place / "more.yaml"
    clip = '{name: slow, file: "pybullet:humanoid3d_walk.txt", edits: [speed: {factor: 0.8}]}'
    more.write_text(f"name: more\nbase: locomotion\nmotions:\n  - {clip}\n", encoding="utf-8")
    where = {"motions": str(more), "store": f"{place}/store"}
    cfg = toy("name=next", "warm.library=toy@1").model_copy(update=where)
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    warm_up(cfg, data, training)
    strength = training.env.curriculum.assist_strength
    slow = torch.tensor([name.startswith("slow") for name in data.library.names])
    assert slow.sum() == 2
    assert strength[slow].tolist() == pytest.approx([cfg.curriculum.assist_start] * 2)
    assert (strength[~slow] == 0).all()
    parent = find_parent(cfg)
    assert parent is not None
    cost = state_cost(cfg, take_trained(training), parent)
    assert cost["samples"] == 0
    assert cost["parent"] == parent.manifest.card["cost"]
    assert cost["parent"]["samples"] > 0
    assert 0 < training.env.curriculum.progress < 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("warm.library=toy@1 ppo.hidden=[32]", "ppo.hidden is [32], and the published network"),
        ("warm.library=toy@1 ppo.hidden=[64,64]", "ppo.hidden is [64, 64], and the published"),
        ("warm.library=toy@1 enc.hidden=[64,64]", "enc.hidden is [64, 64], and the published"),
        ("warm.library=toy@1 latent.latent_dim=6", "expected latent.latent_dim=8"),
        ("warm.library=toy@1 num_disc_obs_steps=4", "expected num_disc_obs_steps=3"),
        ("warm.library=toy", "expected NAME@N"),
        ("warm.distill_steps=5", "none is given; expected warm.library=NAME@N"),
        ("warm.parent_weight=3", "none is given; expected warm.library=NAME@N"),
        ("warm.value_samples=3", "none is given; expected warm.library=NAME@N"),
        ("warm.library=toy@7", "no version '7' in toy; there are: 1"),
        ("warm.library=reach@1", "is a controller; expected a skill library"),
    ],
)
def test_unsuitable_parent_library_is_refused(controller, place, capsys, change, message):
    where = (f"runs={place}/runs", f"store={place}/store", "name=next")
    assert main(["preset=toy", *where, *change.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_published_manifest_has_card_parity_and_licences(skills):
    manifest = skills.resolve("toy").manifest
    card = manifest.card
    assert 0 <= card["survival"] <= 1
    assert set(card["coverage_per_clip"]) == {
        clip.name for clip in manifest.lineage.clips if "mirror" not in clip.name
    }
    assert card["detail"]["survival"]["n"] == 32
    assert all(graph.parity.max_abs_error <= 1e-5 for graph in manifest.graphs.values())
    assert all(clip.licence for clip in manifest.lineage.clips)


def test_rerun_after_card_failure_publishes_without_training(unpublished, skills, place):
    assert unpublished.run.returncode == 2
    assert "No space left on device" in unpublished.run.stderr
    assert not unpublished.names
    (folder,) = place.glob("runs/toy-*")
    assert len(unpublished.rows) == 2048 / (64 * 8)
    assert learned(folder) == unpublished.rows
    assert (folder / CHECKPOINT).read_bytes() == unpublished.checkpoint
    assert skills.resolve("toy").manifest.card["learning"]["samples"][-1] == 2048


def test_rerun_of_a_published_run_publishes_nothing(skills, place, capsys):
    assert main(["preset=toy", f"runs={place}/runs", f"store={place}/store"]) == 0
    printed = capsys.readouterr().out
    assert "toy@1" in printed
    assert "already" in printed
    assert skills.latest("toy") == 1


def test_manifest_contains_no_build_machine_path(skills, place):
    assert str(place) not in skills.resolve("toy").manifest.model_dump_json()


def test_graphs_contain_no_build_machine_path(skills):
    version = skills.resolve("toy")
    for graph in version.manifest.graphs.values():
        data = skills.read(version, graph.file)
        assert b"site-packages" not in data
        assert str(Path.cwd()).encode() not in data


def test_published_policy_is_the_weight_average(skills, place):
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
    # an evaluation copies cost and learning curves
    assert again["cost"] == card["cost"]
    assert again["learning"] == card["learning"]
    assert again["learning"]["samples"][-1] == card["cost"]["samples"]
    assert len(again["learning"]["episode/length"]) == 4


def test_the_learning_curve_ends_at_the_published_card(skills, place, monkeypatch):
    """The networks of the last milestone are those of the published graphs, by their parity, and
    the card is measured under the same conditions."""
    (run,) = place.glob("runs/toy-*")
    version = skills.resolve("toy")
    card = version.manifest.card
    graphs = version.manifest.graphs.values()
    published = {graph.outputs[0].name: skills.read(version, graph.file) for graph in graphs}
    measured: list[Conditions] = []

    def measure(candidate: SkillLibrary, data: TrainingData, conditions: Conditions) -> Card:
        measured.append(conditions)
        return card

    monkeypatch.setattr(
        "pretrain.publishing.export.export", lambda module, examples, output: published[output]
    )
    monkeypatch.setattr(learning, "skill_card", measure)
    assert learning.main([str(run), f"out={place}/learning", "episodes=32"]) == 0
    assert measured == [Conditions(32, toy().eval.seed)]
    (row,) = map(json.loads, (run / "cards-32.jsonl").read_text().splitlines())
    assert row["samples"] == card["cost"]["samples"]
    assert row["survival"] == card["survival"]
    assert row["time_on_clip"] == card["time_on_clip"]["mean"]
    assert row["push_500_newton"] == card["robustness"]["push_500_newton"]
    assert (place / "learning" / "learning.png").exists()


def test_published_skills_and_controller_are_served_over_http(controller):
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
