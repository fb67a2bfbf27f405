"""Converts a character to its manifest entry and back: evaluation, rendering and training on a
library use its body."""

from __future__ import annotations

from pretrain.characters.character import Character
from pretrain.characters.skeleton import Skeleton
from skills_store import manifest as m


def to_manifest(character: Character) -> m.Character:
    return m.Character(
        name=character.name,
        skeleton=character.skeleton.to_dict(),
        joints=character.skeleton.hinges,
        kp=character.kp,
        kd=character.kd,
        damping=character.damping,
        torque_limit=character.torque_limit,
        control_dt=character.control_dt,
        mjcf=character.mjcf,
    )


def from_manifest(body: m.Character) -> Character:
    return Character(
        name=body.name,
        mjcf=body.mjcf,
        skeleton=Skeleton.from_dict(body.skeleton),
        kp=body.kp,
        kd=body.kd,
        damping=body.damping,
        torque_limit=body.torque_limit,
        control_dt=body.control_dt,
    )
