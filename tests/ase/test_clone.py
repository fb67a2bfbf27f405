"""The warm start of the policy and of the encoder."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from pretrain.ase.clone import CloneData, clone
from pretrain.ase.encoder import warm_encoder
from pretrain.ase.latents import sample_on_sphere
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.symmetry import make_symmetry
from pretrain.rl.gradient_steps import GradientSteps
from pretrain.rl.learner import Diverged
from pretrain.sim.env import ActionScale, pd_target
from pretrain.sim.features import proprioception
from pretrain.sim.ground import read_ground

SIZES = Sizes(
    latent_dim=8,
    policy=(128,),
    value=(128,),
    disc=(64,),
    enc=(64,),
    action_std=0.1,
    average_decay=0.9,
)


def test_diverging_warm_start_raises_with_its_name(training_data, skeleton, rng):
    library = training_data.library
    both = make_symmetry(skeleton, library.images, 8, 3)
    nets = make_nets(
        SIZES, library, training_data.demos, skeleton.num_hinges, symmetry=both, rng=rng
    )
    latents = nets.encoder.clip_latents.clone()
    with pytest.raises(Diverged, match="the encoder's warm start: its loss is nan"):
        warm_encoder(nets.encoder, training_data.demos, steps=5, lr=1e30, rng=rng)
    assert torch.equal(nets.encoder.clip_latents, latents)
    data = CloneData(library, nets.action_scale, latents, read_ground(library, skeleton))
    with pytest.raises(Diverged, match=r"the policy's warm start: its loss is (nan|inf)"):
        clone(nets.policy, data, GradientSteps(steps=5, lr=1e30, batch=64), rng)


def test_cloning_fits_getup_under_any_z_and_walk_under_its_own(every_clip, skeleton, rng):
    library = every_clip.library
    both = make_symmetry(skeleton, library.images, 8, 3)
    nets = make_nets(SIZES, library, every_clip.demos, skeleton.num_hinges, symmetry=both, rng=rng)
    latents = nets.encoder.clip_latents
    scale = nets.action_scale

    def error(name: str, until: float, z: torch.Tensor) -> float:
        """Of the action under `z` (8,), root mean square over 32 moments of the clip's first
        `until` seconds."""
        clips = torch.full((32,), library.names.index(name))
        times = torch.linspace(0, until, 32)
        ahead = library.at(clips, times + 1 / 30)
        with torch.no_grad():
            action = nets.policy(
                {"obs": proprioception(library.at(clips, times)), "z": z.expand(32, -1)}
            )
        return float((action - scale.action(pd_target(ahead))).square().mean().sqrt())

    walk = latents[library.names.index("walk")]
    getup = latents[library.names.index("getup_facedown")]
    anywhere = (getup, walk, *sample_on_sphere(4, 8, rng))
    cases = [("walk", 1.0, walk), *[("getup_facedown", 1.5, z) for z in anywhere]]
    before = [error(*case) for case in cases]
    data = CloneData(library, scale, latents, read_ground(library, skeleton))
    clone(nets.policy, data, GradientSteps(steps=300, lr=1e-3, batch=512), rng)
    after = [error(*case) for case in cases]
    assert max(a / b for a, b in zip(after, before, strict=True)) < 0.5
    assert max(after) < 0.25


def test_cloning_changes_the_policy_less_for_known_clips(every_clip, skeleton, rng):
    library = every_clip.library
    both = make_symmetry(skeleton, library.images, 8, 3)
    nets = make_nets(SIZES, library, every_clip.demos, skeleton.num_hinges, symmetry=both, rng=rng)
    latents = nets.encoder.clip_latents
    ground = read_ground(library, skeleton)
    config = GradientSteps(steps=300, lr=1e-3, batch=512)
    first = CloneData(library, nets.action_scale, latents, ground)
    clone(nets.policy, first, config, rng)
    before = deepcopy(nets.policy)
    known = torch.tensor([name.startswith("walk") for name in library.names])
    shifted = ActionScale(nets.action_scale.offset + 0.5, nets.action_scale.scale)
    clone(nets.policy, CloneData(library, shifted, latents, ground, known), config, rng)

    def change(clip: int) -> float:
        clips = torch.full((32,), clip)
        states = library.at(clips, torch.linspace(0, 1, 32))
        obs = {"obs": proprioception(states), "z": latents[clip].expand(32, -1)}
        with torch.no_grad():
            return float((nets.policy(obs) - before(obs)).square().mean().sqrt())

    walk, run = (library.names.index(name) for name in ("walk", "run"))
    assert change(walk) < 0.5 * change(run)
