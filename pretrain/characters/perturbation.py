"""Perturbs a character's mass and friction."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import replace

from pretrain.characters.character import Character
from pretrain.characters.mujoco_bindings import mujoco


def perturb(character: Character, friction: float = 1.0, mass: float = 1.0) -> Character:
    """`character` with every geom's friction coefficients times `friction`, and every body's mass
    and inertia times `mass`; gains and limits are kept."""
    spec = mujoco.MjSpec.from_string(character.mjcf)
    for geom in spec.geoms:
        geom.friction = geom.friction * friction
        geom.density = geom.density * mass
        geom.mass = geom.mass * mass  # NaN where it follows from the density
    for body in spec.bodies:
        body.mass = body.mass * mass
        body.inertia = body.inertia * mass
    spec.compile()
    # MuJoCo 4.0.0 writes six digits: an error of 1e-6
    return replace(character, mjcf=spec.to_xml())
