"""The center of mass of a clip. For training only: masses come from the compiled model."""

# MuJoCo's bindings ship no type stubs
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from functools import cache

import numpy as np

from pretrain.characters.character import load_character
from pretrain.characters.mujoco_bindings import mujoco
from pretrain.characters.rotations import rotate
from pretrain.motion.clip import MotionClip

GRAVITY = 9.81  # m/s^2


@cache
def masses(character: str) -> tuple[np.ndarray, np.ndarray]:
    """Each body's share of the whole mass (B,), and its center in its own frame (B, 3) m."""
    model = mujoco.MjModel.from_xml_string(load_character(character).mjcf)
    mass = np.array(model.body_mass[1:])
    return mass / mass.sum(), np.array(model.body_ipos[1:])


def center_of_mass(clip: MotionClip) -> np.ndarray:
    """(T, 3) m, world."""
    share, centers = masses(clip.skeleton.name)
    positions, rotations = clip.world_poses
    return ((positions + rotate(rotations, centers)) * share[:, None]).sum(1)
