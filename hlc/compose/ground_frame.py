"""Frames on the ground in which a machine's goals are given: an origin and the direction of x."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.rotations import heading_direction
from pretrain.characters.state import CharacterState, Part


def ground_frame(state: CharacterState) -> Tensor:
    """The frame of characters in `state` (N, ...): below the root, x along the heading, (N, 4)."""
    return torch.cat([state.root_pos[..., :2], heading_direction(state.root_rot)], -1)


def to_world(goal: Tensor, layout: tuple[Part, ...], frame: Tensor) -> Tensor:
    """Goals (N, G) given in `frame` (N, 4) -> in the world frame, (N, G). Heights stay.

    Raises ValueError for a rotation: only the state of a box has one, and it is in the world
    frame."""
    return torch.cat([_part_to_world(goal, part, frame) for part in layout], -1)


def _part_to_world(goal: Tensor, part: Part, frame: Tensor) -> Tensor:
    values = goal[:, part.start : part.stop]
    if part.frame != "world":
        return values
    if "quaternion" in part.unit:
        raise ValueError(f"the goal's part {part.name} is a rotation, expected places, directions")
    x = values[:, 0]
    y = values[:, 1]
    c = frame[:, 2]
    s = frame[:, 3]
    turned = torch.stack([c * x - s * y, s * x + c * y], -1)
    level = turned + frame[:, :2] if part.unit == "m" else turned
    return torch.cat([level, values[:, 2:]], -1)
