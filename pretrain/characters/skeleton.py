"""Skeleton: the kinematic tree of a character, read from its compiled model. Numpy only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Joint:
    """All hinges of one body, in serial order: 3 make a ball joint, 1 a hinge."""

    body: str
    hinges: tuple[str, ...]
    axes: str  # "xzy": the hinge axes in the body's frame, first hinge outermost
    start: int  # index of the first hinge among all hinges

    @property
    def stop(self) -> int:
        return self.start + len(self.axes)


@dataclass(frozen=True)
class Skeleton:
    """Bodies parent-first, lengths in m, angles in rad. The root moves freely; every other body has
    0, 1 or 3 hinges."""

    name: str
    bodies: tuple[str, ...]
    parents: tuple[int, ...]  # index of each body's parent, -1 for the root
    offsets: tuple[tuple[float, float, float], ...]  # body origin in its parent's frame
    joints: tuple[Joint, ...]
    lower: tuple[float, ...]  # hinge limits
    upper: tuple[float, ...]
    feet: tuple[str, ...]  # bodies that may touch the ground
    key_bodies: tuple[str, ...]  # head, hands and feet
    # Spheres of the shape: (body index, x, y, z, radius). A box gives its corners with radius 0.
    surface: tuple[tuple[int, float, float, float, float], ...]

    @cached_property
    def hinges(self) -> tuple[str, ...]:
        """Hinge names in the order of `joint_pos`."""
        return tuple(name for joint in self.joints for name in joint.hinges)

    @property
    def num_hinges(self) -> int:
        return len(self.hinges)

    @cached_property
    def balls(self) -> tuple[Joint, ...]:
        """The three-hinge joints, in serial order."""
        return tuple(joint for joint in self.joints if len(joint.axes) == 3)

    @cached_property
    def ball_axes(self) -> np.ndarray:
        """Unit vectors of the axes of their hinges, (balls, 3 hinges, 3)."""
        return np.array([np.eye(3)[list(map("xyz".index, ball.axes))] for ball in self.balls])

    @cached_property
    def generations(self) -> tuple[tuple[int, ...], ...]:
        """All bodies but the root, grouped by their number of joints to the root, nearest first."""
        depth = [0] * len(self.bodies)
        for body, parent in enumerate(self.parents[1:], start=1):
            depth[body] = depth[parent] + 1
        groups: list[list[int]] = [[] for _ in range(max(depth))]
        for body, d in enumerate(depth[1:], start=1):
            groups[d - 1].append(body)
        return tuple(map(tuple, groups))

    @cached_property
    def is_foot(self) -> np.ndarray:
        """Bodies that may touch the ground, (B,) bool."""
        return np.array([body in self.feet for body in self.bodies])

    @cached_property
    def legs(self) -> np.ndarray:
        """Hinges between the root and the feet, (J,) bool."""
        bodies: set[str] = set()
        for foot in self.feet:
            body = self.bodies.index(foot)
            while body > 0:
                bodies.add(self.bodies[body])
                body = self.parents[body]
        return np.array([joint.body in bodies for joint in self.joints for _ in joint.axes])

    @cached_property
    def mirrored_bodies(self) -> tuple[int, ...]:
        """For each body, the index of its image on the other side."""
        return tuple(self.bodies.index(_mirror_name(body)) for body in self.bodies)

    @cached_property
    def mirrored_hinges(self) -> tuple[np.ndarray, np.ndarray]:
        """(source index, sign): hinge i of the mirrored character = sign[i] * hinge source[i] of
        the original.

        Mirroring y keeps rotations about y and reverses those about x and z.
        """
        source = np.array([self.hinges.index(_mirror_name(name)) for name in self.hinges])
        sign = np.array(
            [1.0 if axis == "y" else -1.0 for joint in self.joints for axis in joint.axes]
        )
        return source, sign

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and strings, for a manifest."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Skeleton:
        """Inverse of `to_dict`, also after JSON."""
        data = dict(data)
        joints = tuple(
            Joint(j["body"], tuple(j["hinges"]), j["axes"], j["start"]) for j in data.pop("joints")
        )
        offsets = tuple(map(tuple, data.pop("offsets")))
        surface = tuple(map(tuple, data.pop("surface")))
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        return Skeleton(joints=joints, offsets=offsets, surface=surface, **fields)


def _mirror_name(name: str) -> str:
    for side, opposite in (("left_", "right_"), ("right_", "left_")):
        if name.startswith(side):
            return opposite + name.removeprefix(side)
    return name
