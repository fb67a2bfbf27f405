"""Distillation makes the actions of a policy depend on the latent."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from pretrain.ase.clone import CloneData, clone
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.symmetry import make_symmetry
from pretrain.assist.latent_distillation import (
    VisitedStates,
    distill_latents,
)
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.learner import Diverged
from pretrain.sim.features import proprioception
from pretrain.sim.ground import read_ground
from pretrain.sim.velocity_range import read_velocity_ranges

SIZES = Sizes(
    latent_dim=8,
    policy=(128,),
    value=(64,),
    disc=(64,),
    enc=(64,),
    action_std=0.1,
    average_decay=0.9,
)


@pytest.fixture
def nets(training_data, skeleton, rng):
    """Networks whose policy has cloned every clip under its own latent."""
    library = training_data.library
    both = make_symmetry(skeleton, library.images, 8, 3)
    made = make_nets(
        SIZES, library, training_data.demos, skeleton.num_hinges, symmetry=both, rng=rng
    )
    data = CloneData(
        library, made.action_scale, made.encoder.clip_latents, read_ground(library, skeleton)
    )
    clone(made.policy, data, GradientSteps(steps=300, lr=1e-3, batch=512), rng)
    return made


def visited_states(library, latents) -> VisitedStates:
    """Every clip's own states under its own latent."""
    clips = torch.arange(len(library.names)).repeat_interleave(32)
    times = torch.linspace(0, 1, 32).repeat(len(library.names)) * library.durations[clips]
    states = library.at(clips, times)
    velocity = read_velocity_ranges(library).of(clips).low
    return VisitedStates(proprioception(states), latents[clips], states.joint_pos, velocity)


def test_the_actions_of_a_walk_come_to_depend_on_the_latent(training_data, nets, rng):
    library = training_data.library
    latents = nets.encoder.clip_latents
    visited = visited_states(library, latents)
    before = deepcopy(nets.policy)
    config = GradientSteps(steps=1000, lr=1e-3, batch=1024)
    distill_latents(nets.policy, visited, library, latents, config, rng=rng)
    walk, run = (library.names.index(name) for name in ("walk", "run"))
    obs = visited.obs[visited.z.eq(latents[walk]).all(-1)]

    def act(policy, clip: int) -> torch.Tensor:
        with torch.no_grad():
            return policy({"obs": obs, "z": latents[clip].expand(len(obs), -1)})

    def change(policy) -> float:
        return float((act(policy, run) - act(policy, walk)).square().mean().sqrt())

    assert change(nets.policy) > 1.5 * change(before)
    kept = (act(nets.policy, walk) - act(before, walk)).square().mean().sqrt()
    assert kept < 0.5 * change(nets.policy)


def test_diverging_distillation_raises_with_its_name(training_data, nets, rng):
    latents = nets.encoder.clip_latents
    visited = visited_states(training_data.library, latents)
    config = GradientSteps(steps=5, lr=1e30, batch=64)
    with pytest.raises(Diverged, match="the distillation of the policy"):
        distill_latents(nets.policy, visited, training_data.library, latents, config, rng=rng)
