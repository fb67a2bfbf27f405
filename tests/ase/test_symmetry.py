"""Mirrored observations and network outputs, compared with mirrored clips."""

from __future__ import annotations

import pytest
import torch

from pretrain.ase.encoder import embed_clips
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.symmetry import (
    Symmetry,
    hinge_mirror,
    make_symmetry,
    proprioception_mirror,
    style_mirror,
)
from pretrain.sim.features import proprioception, style_frame

SIZES = Sizes(
    latent_dim=8,
    policy=(32,),
    value=(32,),
    disc=(64,),
    enc=(64,),
    action_std=0.1,
    average_decay=0.9,
)


@pytest.fixture
def sides(library):
    """States of every clip, and of its mirror image, at the same times."""
    clips = torch.arange(0, len(library.names), 2).repeat_interleave(8)
    times = library.durations[clips] * torch.linspace(0, 1, 8).repeat(len(clips) // 8)
    assert all(library.names[c + 1] == f"{library.names[c]}_mirror" for c in clips.tolist())
    return library.at(clips, times), library.at(clips + 1, times)


def test_features_of_a_mirrored_state_are_mirrored(sides, skeleton):
    one, other = sides
    torch.testing.assert_close(
        hinge_mirror(skeleton)(one.joint_pos), other.joint_pos, atol=2e-3, rtol=0
    )
    seen = proprioception_mirror(skeleton)(proprioception(one))
    torch.testing.assert_close(seen, proprioception(other), atol=2e-2, rtol=1e-3)
    style = style_mirror(skeleton)(style_frame(skeleton, one))
    torch.testing.assert_close(style, style_frame(skeleton, other), atol=2e-2, rtol=1e-3)


def test_networks_are_equivariant_under_mirroring(training_data, skeleton, rng):
    library = training_data.library
    demos = training_data.demos
    both = make_symmetry(skeleton, library.images, 8, 3)
    assert both.policy
    assert both.encoder
    nets = make_nets(SIZES, library, demos, skeleton.num_hinges, symmetry=both, rng=rng)
    (mirror_obs, mirror_action) = both.policy
    (window, z) = both.encoder
    x = torch.randn(16, len(mirror_obs), generator=rng)
    torch.testing.assert_close(nets.policy.body(mirror_obs(x)), mirror_action(nets.policy.body(x)))
    torch.testing.assert_close(nets.value.body(mirror_obs(x)), nets.value.body(x))
    rows = torch.randint(len(demos.windows), (16,), generator=rng)
    torch.testing.assert_close(
        nets.encoder(window(demos.windows[rows])),
        z(nets.encoder(demos.windows[rows])),
        atol=1e-3,
        rtol=0,
    )
    clip = demos.clip[rows]
    torch.testing.assert_close(
        nets.discriminator(window(demos.windows[rows]), clip ^ 1),  # images are neighbors
        nets.discriminator(demos.windows[rows], clip),
        atol=1e-3,
        rtol=0,
    )
    places = embed_clips(nets.encoder, demos)
    torch.testing.assert_close(z(places[0::2]), places[1::2], atol=1e-3, rtol=0)


def test_symmetry_is_off_for_clips_without_mirror_images(skeleton):
    assert make_symmetry(skeleton, None, 8, 3) == Symmetry()


def test_latent_of_odd_dimension_is_mirrored(skeleton):
    found = make_symmetry(skeleton, (1, 0), 5, 3)
    assert found.policy is not None
    assert found.encoder is not None
    seen = found.policy[0]
    z = found.encoder[1]
    assert z.source.tolist() == [2, 3, 0, 1, 4]
    assert torch.equal(seen.source[-5:], z.source + len(seen) - 5)
