"""Rig: poses of the parts of a body in a RawMotion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pretrain.characters.rotations import to_matrix
from pretrain.motion.raw import RawMotion
from pretrain.motion.retargeting.frames import unit
from pretrain.motion.retargeting.joint_names import find_joints

TO_Z_UP = {"y": np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0.0]]), "z": np.eye(3)}


@dataclass(frozen=True)
class Rig:
    """A motion with the joint of each part of the body, z up."""

    motion: RawMotion
    parts: dict[str, int]

    @cached_property
    def _moved(self) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
        return self.motion.forward(tuple(self.parts.values()))

    def position(self, part: str) -> np.ndarray:
        """(T, 3), units of the file."""
        return self._moved[0][self.parts[part]] @ TO_Z_UP[self.motion.up].T

    def rotation(self, part: str) -> np.ndarray:
        """Matrices (T, 3, 3) from the joint's own axes to the world."""
        return TO_Z_UP[self.motion.up] @ to_matrix(self._moved[1][self.parts[part]])

    def bone(self, start: str, end: str) -> np.ndarray:
        """Unit vectors from one part to another, (T, 3)."""
        return unit(self.position(end) - self.position(start))

    def length(self, start: str, end: str) -> float:
        """Mean distance, units of the file."""
        return float(np.linalg.norm(self.position(end) - self.position(start), axis=-1).mean())


def make_rig(motion: RawMotion, joints: Mapping[str, str] | None = None) -> Rig:
    """`motion` with its joints found by name, or by `joints` as in `find_joints`."""
    return Rig(motion, _parts(motion, joints))


def _parts(motion: RawMotion, joints: Mapping[str, str] | None) -> dict[str, int]:
    """Part -> joint; pelvis and chest are where legs and arms branch off."""
    parts = find_joints(motion.joints, motion.name, joints)
    arms = motion.ancestors(parts["left_upper_arm"])
    legs = motion.ancestors(parts["left_thigh"])
    parts["chest"] = next(
        joint for joint in motion.ancestors(parts["right_upper_arm"]) if joint in arms
    )
    parts["pelvis"] = next(
        joint for joint in motion.ancestors(parts["right_thigh"]) if joint in legs
    )
    return parts
