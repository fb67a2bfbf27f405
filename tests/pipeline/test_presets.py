"""Presets and schedules: each preset trains, and settings take effect."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from pretrain.ase.env import AseEnv
from pretrain.ase.latent_separation import MAX_COSINE
from pretrain.assembly import (
    build_training,
    load_parent_skills,
    make_near_probs,
    schedule_action_std,
    set_action_std,
    start_from_parent,
    warm_up,
)
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.assist.getup import GETUP_START
from pretrain.config import PretrainConfig
from pretrain.objective import clones_reference
from pretrain.overrides import load_config
from pretrain.rl.background import use_one_thread
from pretrain.rl.run_folder import NOT_LEARNING, hash_config
from pretrain.sim.ground import read_ground
from pretrain.train import train
from pretrain.training_aids import make_curriculum
from pretrain.training_data import load_training_data
from skills_store.open import open_store
from skills_store.store import BUNDLED
from tests.pipeline.small import PARENT, SMALL, toy, weights


def test_clips_without_assistance_are_phase_locked():
    cfg = toy()
    training = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    env = training.env
    assert isinstance(env, AssistedEnv)
    assert not env.termination.phase_locked.any()  # all are assisted at first
    env.curriculum.assist_strength[0] = 0.0
    env.step_schedule()
    assert env.termination.phase_locked[:2].tolist() == [True, False]
    again = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    )
    again.restore(training.snapshot())
    assert isinstance(again.env, AssistedEnv)
    assert torch.equal(again.env.termination.phase_locked, env.termination.phase_locked)


@pytest.mark.parametrize("critics", ["separate", "normalized"])
def test_separate_critics_have_a_value_for_each_reward(critics):
    cfg = toy(f"ppo.critics={critics}", "imitation.foot_weight=0")
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    warm_up(cfg, data, training)
    scalars = training.iterate()
    assert {"reward/style", "reward/skill", "reward/imitation", "reward/nearer"} <= set(scalars)
    assert training.nets.value.scale.std.shape == (4,)
    assert (training.nets.value.scale.std != 1).all()


@pytest.mark.parametrize("key", ["diversity_weight", "diversity_share"])
def test_without_a_diversity_weight_or_share_there_is_no_diversity_loss(key):
    cfg = toy(f"enc.{key}=0")
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    warm_up(cfg, data, training)
    scalars = training.iterate()
    assert "policy/kl" in scalars
    assert "policy/diversity" not in scalars


def test_the_action_std_falls_as_clips_are_mastered():
    ppo = toy("ppo.action_std=0.1", "ppo.action_std_final=0.025").ppo
    found = [schedule_action_std(ppo, progress) for progress in (0.0, 0.5, 1.0)]
    assert found == pytest.approx([0.1, 0.05, 0.025])


@pytest.mark.parametrize(("lost", "share"), [(False, 0.6), (True, 0.8)])
def test_near_probs_depend_on_steps_between_losses(lost, share):
    cfg = toy("latent.near_prob=0.8")
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    curriculum = make_curriculum(cfg, data, read_ground(data.library, data.character.skeleton))
    curriculum.assist_strength[:] = 0
    curriculum.steps[:] = 300
    curriculum.failures[:] = 2 * lost
    expected = torch.full((len(data.library.names),), share)
    torch.testing.assert_close(curriculum.near_probs(), expected)


def test_near_probs_are_constant_without_training_aids():
    cfg = toy("assist=none", "latent.near_prob=0.8")
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    near_probs = make_near_probs(cfg, data, None)
    torch.testing.assert_close(near_probs(), torch.full((len(data.library.names),), 0.8))


def test_hidden_sizes_apply_per_network():
    widths = {"ppo.hidden": 8, "ppo.value_hidden": 12, "disc.hidden": 16, "enc.hidden": 20}
    cfg = toy(*(f"{name}=[{width}]" for name, width in widths.items()))
    nets = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    ).nets
    bodies = (nets.policy.body, nets.value.body, nets.discriminator.body, nets.encoder.body)
    assert [body[0].out_features for body in bodies] == list(widths.values())


@pytest.mark.parametrize("preset", ["mobility", "all"])
def test_preset_trains_at_start_and_after_schedules_end(preset, tmp_path):
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
    assert rows[0]["action_std"] == pytest.approx(cfg.ppo.action_std, rel=0.05)
    assert rows[-1]["action_std"] == pytest.approx(cfg.ppo.action_std_final, rel=0.05)
    assert env.termination.phase_locked.all()


def test_the_preset_ase_learns_with_a_constant_rate_and_no_aids(tmp_path):
    small = (*SMALL, "num_disc_obs_steps=3", "ppo.horizon=8", "ppo.minibatch=256")
    cfg = load_config(PretrainConfig, "pretrain.conf", ["preset=ase", *small])
    training = build_training(cfg, load_training_data("humanoid", cfg.motions, 3))
    assert isinstance(training.env, AseEnv)
    assert not training.nets.discriminator.conditional
    warm_up(cfg, load_training_data("humanoid", cfg.motions, 3), training)
    assert train(cfg.model_copy(update={"samples": 2 * 64 * 8}), training, tmp_path)
    rows = [json.loads(row) for row in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert {row["policy/lr"] for row in rows} == {2e-5}
    assert all(row["reward/skill"] >= 0 for row in rows)
    assert "assist" not in rows[-1]


def test_without_the_aids_plain_ase_learns_and_resumes_bit_for_bit(tmp_path):
    cfg = toy("assist=none")
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    whole = build_training(cfg, training_data)
    other = build_training(cfg, training_data)
    assert isinstance(whole.env, AseEnv)
    assert set(whole.objective.rewards) == {"style", "skill"}
    assert set(whole.env.observe()) == set(whole.nets.value.inputs.names) == {"obs", "z"}
    iteration = cfg.num_envs * cfg.ppo.horizon
    assert train(cfg.model_copy(update={"samples": 2 * iteration}), whole, tmp_path)
    assert other.resume(tmp_path, 4 * iteration)
    set_action_std(cfg, other)
    for training in (whole, other):
        with use_one_thread():
            training.iterate()
        training.background.finish_fits()
    assert torch.equal(weights(whole), weights(other))


def test_only_getup_clips_have_a_getup_assistance(rising):
    cfg = toy(f"motions={rising}")
    env = build_training(
        cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    ).env
    assert isinstance(env, AssistedEnv)
    assert sorted(set(env.getup.strength.tolist())) == pytest.approx([0.0, GETUP_START])


def test_an_assistance_in_switches_comes_with_a_cloning_loss():
    assert not clones_reference(toy("curriculum.switch_assist_start=0"))
    assert clones_reference(toy("curriculum.switch_assist_start=0.5"))


def test_checkpoint_interval_does_not_change_the_config_hash():
    hashes = {hash_config(toy(f"checkpoint_interval={s}"), NOT_LEARNING) for s in (10, 60)}
    assert len(hashes) == 1
    assert hash_config(toy("ppo.gamma=0.9"), NOT_LEARNING) not in hashes


def test_preset_switching_distills_a_library_and_assists_switches(tmp_path):
    sizes = ("num_envs=64", "warm.value_samples=0")
    small = ("preset=switching", f"store={BUNDLED}", f"warm.library={PARENT}", *sizes)
    cfg, undistilled = (
        load_config(PretrainConfig, "pretrain.conf", [*small, f"warm.distill_steps={steps}"])
        for steps in (20, 0)
    )
    training_data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, training_data)
    assert start_from_parent(undistilled, training_data, training)
    learned = weights(training)
    assert start_from_parent(cfg, training_data, training)
    distilled = weights(training)
    assert not torch.equal(learned, distilled)
    assert isinstance(training.env, AssistedEnv)
    assert not training.env.switches.switches.any()  # distillation records no switches
    assert train(cfg.model_copy(update={"samples": 2 * 64 * 8}), training, tmp_path)
    assert not torch.equal(distilled, weights(training))
    env = training.env
    assert isinstance(env, AssistedEnv)
    assert not env.curriculum.assist_strength.any()  # its clips are learned
    first = cfg.curriculum.switch_assist_start
    assert env.switches.strength.amax() == pytest.approx(first, rel=0.05)


def test_parent_skills_are_those_of_the_library_and_its_clips(tmp_path):
    recipe = tmp_path / "more.yaml"
    added = '  - {file: "everyday:cmu_35_20.npz", name: run1}'
    recipe.write_text("\n".join(["name: more", "base: mobility_walks", "motions:", added]))
    keys = ("preset=mobility", f"motions={recipe}", f"store={BUNDLED}", f"warm.library={PARENT}")
    steps = ("num_envs=64", "warm.clone_steps=5", "warm.encoder_steps=20", "warm.parent_weight=3")
    cfg = load_config(PretrainConfig, "pretrain.conf", [*keys, *steps])
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    parent = load_parent_skills(cfg, data, training.nets)
    assert parent is not None
    names = [name for name, old in zip(data.library.names, parent.is_learned, strict=True) if old]
    published = open_store(BUNDLED).resolve(PARENT).manifest.latent.clips
    assert set(names) == set(published)
    assert start_from_parent(cfg, data, training)
    assert train(cfg.model_copy(update={"samples": 2 * 64 * 8}), training, tmp_path)
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["policy/parent_distance"] > 0


def test_clips_added_to_a_library_get_latents_apart_and_its_own_keep_theirs(tmp_path):
    recipe = tmp_path / "more.yaml"
    runs = [f'  - {{file: "everyday:cmu_35_20.npz", name: run{i}}}' for i in range(3)]
    recipe.write_text("\n".join(["name: more", "base: mobility_walks", "motions:", *runs]))
    keys = ("preset=mobility", f"motions={recipe}", f"store={BUNDLED}", f"warm.library={PARENT}")
    steps = ("num_envs=64", "warm.clone_steps=5", "warm.encoder_steps=20")
    cfg = load_config(PretrainConfig, "pretrain.conf", [*keys, *steps])
    data = load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)
    training = build_training(cfg, data)
    assert start_from_parent(cfg, data, training)
    latents = training.nets.encoder.clip_latents
    published = open_store(BUNDLED).resolve(PARENT).manifest.latent.clips
    for name, latent in zip(data.library.names, latents, strict=True):
        if name in published:
            torch.testing.assert_close(latent, torch.tensor(published[name]))
    assert len(data.library.names) == len(published) + 6
    origin = torch.tensor(data.library.originals)
    cosines = (latents @ latents.T)[origin[:, None] != origin]
    assert cosines.max() <= MAX_COSINE + 0.001  # the three runs are one motion
