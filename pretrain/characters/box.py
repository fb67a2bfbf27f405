"""Box: a free rigid body beside a character."""

from __future__ import annotations

from dataclasses import dataclass

from pretrain.characters.state import Part


@dataclass(frozen=True)
class Box:
    """A cuboid of even density."""

    size: tuple[float, float, float]  # m, whole lengths along its own axes
    mass: float  # kg


# Layout of a box's state; its origin is its center.
BOX_LAYOUT = (
    Part("box_pos", 0, 3, "m", "world"),
    Part("box_rot", 3, 7, "quaternion wxyz", "world"),
    Part("box_vel", 7, 10, "m/s", "world"),
    Part("box_ang_vel", 10, 13, "rad/s", "world"),
)
