"""Reflections of the networks' inputs and outputs when a character is reflected in its own plane of
symmetry (y -> -y)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretrain.characters.skeleton import Skeleton
from pretrain.rl.mirror import (
    Mirror,
    Reflection,
    concatenate_mirrors,
    make_half_swap,
    make_identity_mirror,
)

# positions, velocities, the axes of a rotation
POLAR = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))
AXIAL = Mirror(torch.arange(3), torch.tensor([-1.0, 1.0, -1.0]))  # angular velocities
AXES = POLAR.repeat_blocks((0, 1))  # a rotation as two of its axes


@dataclass(frozen=True)
class Symmetry:
    """How each network's input and output are mirrored; None: without symmetry."""

    policy: Reflection | None = None
    value: Mirror | None = None  # of its input; values do not change
    discriminator: Reflection | None = None
    encoder: Reflection | None = None


def make_symmetry(
    skeleton: Skeleton,
    images: Sequence[int] | None,
    latent_dim: int,
    steps: int,
    *,
    privileged: Mirror | None = None,
    conditional: bool = True,
) -> Symmetry:
    """For networks over windows of `steps` frames; `images` has the index of each clip's mirror
    image, None: no symmetry.

    The encoder commutes with `latent_mirror`, so mirrored clips have mirrored embeddings.
    `privileged` mirrors the value net's privileged observation. `conditional`: the discriminator
    has the clip."""
    if images is None:
        return Symmetry()
    z = latent_mirror(latent_dim)
    obs = concatenate_mirrors(proprioception_mirror(skeleton), z)
    window = style_mirror(skeleton).repeat_blocks(range(steps))
    clip = make_identity_mirror(1).repeat_blocks(images)
    return Symmetry(
        policy=(obs, hinge_mirror(skeleton)),
        value=concatenate_mirrors(obs, privileged) if privileged else obs,
        discriminator=(
            concatenate_mirrors(window, clip) if conditional else window,
            make_identity_mirror(1),
        ),
        encoder=(window, z),
    )


def latent_mirror(latent_dim: int) -> Mirror:
    """Of a latent: swaps its halves; the last of an odd number of dimensions is kept."""
    return concatenate_mirrors(
        make_half_swap(latent_dim - latent_dim % 2), make_identity_mirror(latent_dim % 2)
    )


def hinge_mirror(skeleton: Skeleton) -> Mirror:
    """Of joint angles, velocities and targets, (J)."""
    source, sign = skeleton.mirrored_hinges
    return Mirror(torch.from_numpy(source), torch.from_numpy(sign).float())


def proprioception_mirror(skeleton: Skeleton) -> Mirror:
    """Of `pretrain.sim.features.proprioception`, (13 + 2 J)."""
    hinges = hinge_mirror(skeleton)
    return concatenate_mirrors(make_identity_mirror(1), AXES, POLAR, AXIAL, hinges, hinges)


def style_mirror(skeleton: Skeleton) -> Mirror:
    """Of `pretrain.sim.features.style_frame`, (F)."""

    def find_images(bodies: Sequence[str]) -> list[int]:
        images = (
            skeleton.bodies[skeleton.mirrored_bodies[skeleton.bodies.index(body)]]
            for body in bodies
        )
        return [bodies.index(image) for image in images]

    singles = [joint for joint in skeleton.joints if len(joint.axes) == 1]
    signs = hinge_mirror(skeleton).sign[[joint.start for joint in singles]]
    hinges = Mirror(torch.tensor(find_images([joint.body for joint in singles])), signs)
    balls = AXES.repeat_blocks(find_images([ball.body for ball in skeleton.balls]))
    keys = POLAR.repeat_blocks(find_images(skeleton.key_bodies))
    return concatenate_mirrors(make_identity_mirror(1), AXES, balls, hinges, POLAR, AXIAL, keys)
