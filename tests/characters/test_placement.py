"""Placed states: the whole body turns and moves, and so do its velocities."""

from __future__ import annotations

import torch

from pretrain.characters.kinematics import forward
from pretrain.characters.placement import place
from pretrain.characters.rotations import from_axis_angle, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary


def bodies(skeleton: Skeleton, state: CharacterState) -> torch.Tensor:
    """Where the bodies are, (N, B, 3) m."""
    return forward(skeleton, state.root_pos, state.root_rot, state.joint_pos)[0]


def test_every_body_turns_about_the_origin_and_moves(
    library: MotionLibrary, skeleton: Skeleton, rng: torch.Generator
) -> None:
    state = library.at(*library.sample(16, rng))
    turn = from_axis_angle("z", torch.linspace(-3, 3, 16))
    offset = torch.tensor([2.0, -1.0, 0.5])
    placed = place(state, turn, offset)
    expected = rotate(turn[:, None], bodies(skeleton, state)) + offset
    torch.testing.assert_close(bodies(skeleton, placed), expected, atol=1e-5, rtol=1e-5)


def test_velocities_stay_the_change_of_place_and_rotation(
    library: MotionLibrary, rng: torch.Generator
) -> None:
    clips, times = library.sample(16, rng)
    turn = from_axis_angle("z", torch.linspace(-3, 3, 16))
    now = place(library.at(clips, times * 0.5), turn, torch.zeros(3))
    soon = place(library.at(clips, times * 0.5 + 0.01), turn, torch.zeros(3))
    moved = (soon.root_pos - now.root_pos) / 0.01
    assert (moved - now.root_vel).norm(dim=-1).max() < 0.5
    assert (moved - now.root_vel).norm(dim=-1).mean() < 0.1 * now.root_vel.norm(dim=-1).mean()
