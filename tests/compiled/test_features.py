"""Compiled features match those of torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pretrain.characters.state import CharacterState, unflatten
from pretrain.compiled import features as compiled
from pretrain.sim import features


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=2e-6)


def random_states(rng: torch.Generator, hinges: int, n: int = 300) -> CharacterState:
    """Any rotation of the root, and joints turned by more than half a turn."""
    flat = torch.randn(n, 13 + 2 * hinges, generator=rng)
    flat[:, 3:7] /= flat[:, 3:7].norm(dim=-1, keepdim=True)
    flat[:, 13 : 13 + hinges] *= 2
    return unflatten(flat)


def test_compiled_features_match_torch_on_random_states(skeleton, rng):
    state = random_states(rng, skeleton.num_hinges)
    frames = compiled.style_frame(skeleton, state)
    assert_close(frames, features.style_frame(skeleton, state))
    assert_close(compiled.proprioception(state), features.proprioception(state))


@pytest.mark.parametrize(
    "turn", [(0.5, 0.5, -0.5, 0.5), (0.0, 0.0, 1.0, 0.0), (0.0, 1.0, 0.0, 0.0)]
)
def test_compiled_features_match_torch_on_singular_root_rotations(skeleton, rng, turn):
    state = random_states(rng, skeleton.num_hinges, n=4)
    state.root_rot[:] = torch.tensor(turn)
    frames = compiled.style_frame(skeleton, state)
    assert_close(frames, features.style_frame(skeleton, state))


def test_nan_input_gives_nan_features_in_its_row_only(skeleton, rng):
    state = random_states(rng, skeleton.num_hinges, n=2)
    state.joint_pos[1, 3] = torch.nan
    frames = compiled.style_frame(skeleton, state)
    assert frames[0].isfinite().all()
    assert frames[1].isnan().any()


def test_compiled_features_accept_an_empty_batch(skeleton, rng):
    state = random_states(rng, skeleton.num_hinges, n=0)
    assert len(compiled.style_frame(skeleton, state)) == 0
    assert len(compiled.proprioception(state)) == 0
