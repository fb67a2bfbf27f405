"""How what the networks see and say changes when a character is reflected in its own plane of symmetry (y -> -y)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pretrain.characters.skeleton import Skeleton
from pretrain.rl.mirror import Mirror, Reflection, beside, halves, unmoved

POLAR = Mirror(torch.arange(3), torch.tensor([1.0, -1.0, 1.0]))  # positions, velocities, the axes of a rotation
AXIAL = Mirror(torch.arange(3), torch.tensor([-1.0, 1.0, -1.0]))  # angular velocities
AXES = POLAR.repeated((0, 1))  # a rotation as two of its axes


@dataclass(frozen=True)
class Symmetry:
    """How each network's input and output are mirrored; None: not at all."""

    policy: Reflection | None = None
    value: Reflection | None = None
    discriminator: Reflection | None = None
    encoder: Reflection | None = None


def symmetry(
    skeleton: Skeleton,
    images: Sequence[int] | None,
    latent_dim: int,
    steps: int,
    privileged: Mirror | None = None,
) -> Symmetry:
    """Of networks over windows of `steps` frames; `images` has the index of each clip's mirror image, None: no symmetry.

    A latent is mirrored by swapping its halves; of an odd number of dimensions the last stays as it is. The encoder commutes
    with that, and so places the clips accordingly.
    `privileged` mirrors the observation that only the value net has.
    """
    if images is None:
        return Symmetry()
    z = beside(halves(latent_dim - latent_dim % 2), unmoved(latent_dim % 2))
    seen = beside(proprioception_mirror(skeleton), z)
    window = style_mirror(skeleton).repeated(range(steps))
    clip = unmoved(1).repeated(images)
    return Symmetry(
        policy=(seen, hinge_mirror(skeleton)),
        value=(beside(seen, privileged) if privileged else seen, unmoved(1)),
        discriminator=(beside(window, clip), unmoved(1)),
        encoder=(window, z),
    )


def hinge_mirror(skeleton: Skeleton) -> Mirror:
    """Of joint angles, rates and targets, (J)."""
    source, sign = skeleton.mirrored_hinges
    return Mirror(torch.from_numpy(source), torch.from_numpy(sign).float())


def proprioception_mirror(skeleton: Skeleton) -> Mirror:
    """Of `pretrain.sim.features.proprioception`, (13 + 2 J)."""
    hinges = hinge_mirror(skeleton)
    return beside(unmoved(1), AXES, POLAR, AXIAL, hinges, hinges)


def style_mirror(skeleton: Skeleton) -> Mirror:
    """Of `pretrain.sim.features.style_frame`, (F)."""

    def others(bodies: Sequence[str]) -> list[int]:
        images = (skeleton.bodies[skeleton.mirrored_bodies[skeleton.bodies.index(body)]] for body in bodies)
        return [bodies.index(image) for image in images]

    singles = [joint for joint in skeleton.joints if len(joint.axes) == 1]
    signs = hinge_mirror(skeleton).sign[[joint.start for joint in singles]]
    hinges = Mirror(torch.tensor(others([joint.body for joint in singles])), signs)
    balls = AXES.repeated(others([ball.body for ball in skeleton.balls]))
    keys = POLAR.repeated(others(skeleton.key_bodies))
    return beside(unmoved(1), AXES, balls, hinges, POLAR, AXIAL, keys)
