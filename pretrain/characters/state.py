"""CharacterState: positions and velocities of a character, in simulator and clips alike."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pretrain.characters.rotations import Array, namespace


@dataclass(frozen=True)
class CharacterState:
    """Batched over leading axes; numpy arrays or torch tensors. World frame, SI units, radians."""

    root_pos: Array  # (..., 3) m
    root_rot: Array  # (..., 4) wxyz, unit
    root_vel: Array  # (..., 3) m/s, world
    root_ang_vel: Array  # (..., 3) rad/s, world
    joint_pos: Array  # (..., J) rad
    joint_vel: Array  # (..., J) rad/s

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes."""
        return tuple(self.root_pos.shape[:-1])

    def __getitem__(self, index: Any) -> CharacterState:
        return self.map(lambda x: x[index])

    def map(self, f: Any) -> CharacterState:
        return replace(self, **{field.name: f(getattr(self, field.name)) for field in fields(self)})

    def flatten(self) -> Array:
        """One vector per state, in the order of `layout`: (..., 13 + 2 J)."""
        values = [getattr(self, field.name) for field in fields(self)]
        return namespace(self.root_pos).concatenate(values, -1)


@dataclass(frozen=True)
class Part:
    """A named slice of a flat state, goal or memory.

    `unit`: "m", "m/s", "rad", "rad/s", "unit vector", "quaternion wxyz", or "1" for a plain number.
    `frame`: "world"; "joint", for angles and velocities of hinges; "scalar", invariant to rotation
    of the scene."""

    name: str
    start: int
    stop: int
    unit: str
    frame: str


def layout(num_hinges: int) -> tuple[Part, ...]:
    """The layout of a flat state, as policy and encoder graphs declare it."""
    sizes = (
        ("root_pos", 3, "m", "world"),
        ("root_rot", 4, "quaternion wxyz", "world"),
        ("root_vel", 3, "m/s", "world"),
        ("root_ang_vel", 3, "rad/s", "world"),
        ("joint_pos", num_hinges, "rad", "joint"),
        ("joint_vel", num_hinges, "rad/s", "joint"),
    )
    parts: list[Part] = []
    start = 0
    for name, size, unit, frame in sizes:
        parts.append(Part(name, start, start + size, unit, frame))
        start += size
    return tuple(parts)


def unflatten(vector: Array) -> CharacterState:
    """Inverse of `CharacterState.flatten`: (..., 13 + 2 J) -> state."""
    num_hinges = (vector.shape[-1] - 13) // 2
    parts = layout(num_hinges)
    return CharacterState(**{part.name: vector[..., part.start : part.stop] for part in parts})
