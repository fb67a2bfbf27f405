"""Placement of states elsewhere in the world. Pure; numpy or torch."""

from __future__ import annotations

from dataclasses import replace

from pretrain.characters.rotations import Array, multiply, rotate
from pretrain.characters.state import CharacterState


def place(state: CharacterState, turn: Array, offset: Array) -> CharacterState:
    """States (...) turned about the world's origin by `turn` (..., 4), then moved by `offset`
    (..., 3) m."""
    return replace(
        state,
        root_pos=rotate(turn, state.root_pos) + offset,
        root_rot=multiply(turn, state.root_rot),
        root_vel=rotate(turn, state.root_vel),
        root_ang_vel=rotate(turn, state.root_ang_vel),
    )
