"""Features are invariant to the position and heading of the character."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.characters.placement import place
from pretrain.characters.rotations import from_axis_angle
from pretrain.characters.state import CharacterState
from pretrain.sim.features import proprioception, style_frame


def moved(state: CharacterState, yaw: float, shift: tuple[float, float]) -> CharacterState:
    """The whole scene turned about z and shifted on the ground."""
    turn = from_axis_angle("z", torch.full(state.shape, yaw))
    return place(state, turn, torch.tensor([*shift, 0.0]))


@pytest.mark.parametrize("yaw", [0.7, 3.14159265, -2.5])
def test_features_are_invariant_to_heading_and_place(library, skeleton, rng, yaw):
    state = library.at(*library.sample(64, rng))
    other = moved(state, yaw, (3.0, -8.0))
    torch.testing.assert_close(proprioception(other), proprioception(state), atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(
        style_frame(skeleton, other), style_frame(skeleton, state), atol=2e-5, rtol=1e-5
    )


def test_features_distinguish_poses_velocities_and_lean(library, skeleton, rng):
    state = library.at(*library.sample(8, rng))
    lean = torch.tensor([0.98, 0.0, 0.199, 0.0]).expand(8, 4)
    for change in (
        {"joint_pos": state.joint_pos + 0.1},
        {"root_vel": state.root_vel + 1},
        {"root_rot": lean},
    ):
        other = replace(state, **change)
        assert (proprioception(other) - proprioception(state)).abs().amax(-1).min() > 0.05
        assert (style_frame(skeleton, other) - style_frame(skeleton, state)).abs().amax(
            -1
        ).min() > 0.05


def test_style_frames_of_a_batch_equal_those_of_its_rows(library, skeleton, rng):
    state = library.at(*library.sample(5, rng))
    rows = torch.cat([style_frame(skeleton, state[i : i + 1]) for i in range(5)])
    torch.testing.assert_close(style_frame(skeleton, state), rows)
