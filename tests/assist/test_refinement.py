"""Corrections at each phase are found, learned by the policy, and found again after an
interruption."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from pretrain.assembly import build_training, warm_up
from pretrain.assist.reference_tracker import ReferenceTracker
from pretrain.assist.refinement import (
    LEG_SHARE,
    MIN_COUNT,
    NEAR,
    RATE,
    PhaseCorrectedPolicy,
    PhaseObservationEnv,
    Refinement,
)
from pretrain.config import PretrainConfig
from pretrain.overrides import load_config
from pretrain.rl import checkpoint
from pretrain.rl.nets import GaussianPolicy, Inputs, make_unit_normalizer, mlp
from pretrain.sim.start_states import read_start_states
from pretrain.train import make_refinement
from pretrain.training_data import TrainingData, load_training_data

ELBOW = "right_lower_arm"


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> tuple[PretrainConfig, TrainingData]:
    """One walk, and full assistance all the way."""
    recipe = tmp_path_factory.mktemp("recipe") / "walk.yaml"
    recipe.write_text(
        'name: walk\nmirror: false\nmotions:\n  - {file: "pybullet:humanoid3d_walk.txt"}\n'
    )
    led = (
        "curriculum.assist_start=1",
        "imitation.reward_weight=1",
        "tracking_termination.phase_locking=always",
        "latent.clip_latent_prob=1",
    )
    refined = (
        "refine.correct=20480",
        "refine.learn=5120",
        "ppo.action_std=0.02",
        "warm.clone_steps=400",
    )
    cfg = load_config(
        PretrainConfig, "pretrain.conf", ["preset=toy", f"motions={recipe}", *led, *refined]
    )
    return cfg, load_training_data(cfg.character, cfg.motions, cfg.num_disc_obs_steps)


def begun(walk: tuple[PretrainConfig, TrainingData], wrong: float = 0.0) -> tuple[Refinement, int]:
    """A refinement of a policy that aims along the walk but for an elbow, which is `wrong` in units
    of actions; its hinge."""
    cfg, training_data = walk
    training = build_training(cfg, training_data)
    warm_up(cfg, training_data, training)
    elbow = next(j.start for j in training_data.character.skeleton.joints if j.body == ELBOW)
    aims = training.nets.policy.state_dict()
    (last,) = (
        bias for name, bias in aims.items() if bias.shape == (28,) and name.startswith("body")
    )
    last[elbow] += wrong
    training.nets.average.module.load_state_dict(aims)
    return make_refinement(cfg, training_data, training), elbow


def corrected(legs: tuple[bool, ...]) -> PhaseCorrectedPolicy:
    policy = GaussianPolicy(
        Inputs({"obs": make_unit_normalizer(2)}),
        mlp([2, len(legs)], rng=torch.Generator().manual_seed(0)),
        0.1,
    )
    return PhaseCorrectedPolicy(policy, 3, torch.tensor(legs))


def test_correction_is_mean_error_per_phase_scaled_down_for_legs():
    teacher = corrected((False, True))
    phase_index = torch.tensor([0] * MIN_COUNT * 2 + [1] * (MIN_COUNT // 2))
    error = torch.where(phase_index == 0, 0.4, 0.2)[:, None].expand(-1, 2)
    teacher.learn(phase_index, torch.ones(len(phase_index)), error)
    expected = RATE * torch.tensor([[0.4, 0.4 * LEG_SHARE], [0.1, 0.1 * LEG_SHARE], [0.0, 0.0]])
    torch.testing.assert_close(teacher.corrections, expected)


def test_corrections_scale_with_trust_and_zero_trust_learns_none():
    teacher = corrected((False,))
    teacher.learn(torch.zeros(20, dtype=torch.long), torch.zeros(20), torch.ones(20, 1))
    assert not teacher.corrections.any()
    teacher.corrections[:] = 0.5
    obs = {
        "obs": torch.zeros(3, 2),
        "phase_index": torch.tensor([0, 1, 2]),
        "trust": torch.tensor([0.0, 0.5, 1.0]),
    }
    torch.testing.assert_close(
        teacher.mean(obs) - teacher.policy(obs), torch.tensor([[0.0], [0.25], [0.5]])
    )


def test_phase_indices_are_contiguous_over_all_clips(humanoid, every_clip):
    library = every_clip.library
    clips = torch.arange(len(library.names))
    rising = torch.zeros(len(clips), dtype=torch.bool)
    tracker = ReferenceTracker(
        library, read_start_states(library, humanoid.skeleton, 3), rising, len(clips)
    )
    tracker.start(clips, clips, torch.zeros(len(clips)))
    first = tracker.phase_index()
    tracker.start(clips, clips, library.durations)
    last = tracker.phase_index()
    assert first[0] == 0
    assert int(last[-1]) == tracker.num_phases - 1
    assert all(
        int(after) == int(before) + 1 for before, after in zip(last[:-1], first[1:], strict=True)
    )
    assert torch.equal(last - first, library.lengths - 1)


def test_refinement_corrects_a_biased_elbow_and_policy_learns_it(walk):
    refining, elbow = begun(walk, wrong=0.6)
    others = [j for j in range(refining.noise.value.shape[1]) if j != elbow]
    while refining.samples < refining.correcting:
        refining.iterate()
    found = refining.teacher.corrections
    assert found[:, elbow].mean() == pytest.approx(-0.6, abs=0.25)
    assert found[:, elbow].mean().abs() > 2 * found[:, others].mean(0).abs().max()
    seen = PhaseObservationEnv(refining.env).observe()
    assert (seen["trust"] > 0).float().mean() > 0.5, (
        f"an assisted world is within {NEAR} of its reference"
    )
    losses = []
    while refining.samples < refining.correcting + refining.learning:
        losses.append(refining.iterate()["refine/loss"])
    assert losses[-1] < losses[0]
    seen = PhaseObservationEnv(refining.env).observe()
    trusted = seen["trust"] == 1
    with torch.no_grad():
        learned = (refining.policy(seen) - refining.teacher.policy(seen))[trusted]
    wanted = found[seen["phase_index"][trusted]]
    assert learned[:, elbow].mean() == pytest.approx(float(wanted[:, elbow].mean()), abs=0.1)


def test_learning_rate_is_constant_first_then_decays(walk):
    refining, _ = begun(walk)
    refining.samples = refining.correcting
    rates = []
    while refining.samples < refining.correcting + refining.learning:
        rates.append(refining.iterate()["refine/lr"])
    assert rates[0] == rates[len(rates) // 2]
    assert all(after <= before for before, after in pairwise(rates))
    assert rates[-1] < 0.5 * rates[0]


@pytest.mark.parametrize("turns", [3, 42])  # amid correcting, and amid learning
def test_resumed_refinement_is_bit_identical(walk, turns, tmp_path):
    whole = begun(walk)[0]
    other = begun(walk)[0]
    for _ in range(turns):
        whole.iterate()
    for _ in range(2):  # somewhere else
        other.iterate()
    checkpoint.save(tmp_path / "saved.pt", whole.snapshot())
    other.restore(checkpoint.load(tmp_path / "saved.pt"))
    for refining in (whole, other):
        for _ in range(3):
            refining.iterate()
    assert torch.equal(other.teacher.corrections, whole.teacher.corrections)
    ended = whole.policy.state_dict()
    assert all(torch.equal(x, ended[name]) for name, x in other.policy.state_dict().items())
    assert (other.iteration, other.samples) == (whole.iteration, whole.samples)
