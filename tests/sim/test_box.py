"""A free box in the scene: reading, placing and contacts, without effect on the character."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.characters.box import Box
from pretrain.characters.character import Character
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import Backend, FreeBox, make_backend
from pretrain.sim.start_states import default_state

N = 3
BOX = Box((0.4, 0.4, 1.8), 8.6)
EVERY = torch.arange(N)
STANDING = torch.tensor([0.0, 2.0, 0.9, 1.0, *[0.0] * 9])


@pytest.fixture
def backend(humanoid: Character) -> Backend:
    made = make_backend("mujoco", replace(humanoid, box=BOX), N, 1)
    made.place(EVERY, default_state(humanoid.skeleton)[torch.zeros(N, dtype=torch.long)])
    return made


def box_of(backend: Backend) -> FreeBox:
    assert backend.box is not None
    return backend.box


def test_a_box_is_read_back_as_it_was_placed(backend: Backend) -> None:
    """The rotation rate is in the world frame, although the engine keeps it in the box's own."""
    state = torch.randn(N, 13, generator=torch.Generator().manual_seed(0))
    state[:, 3:7] = torch.nn.functional.normalize(state[:, 3:7], dim=-1)
    before = backend.state().flatten()
    box_of(backend).place(EVERY, state)
    torch.testing.assert_close(box_of(backend).state(), state, atol=1e-5, rtol=1e-5)
    assert torch.equal(backend.state().flatten(), before)


def test_a_box_out_of_reach_changes_no_character(
    humanoid: Character, library: MotionLibrary
) -> None:
    start = library.at(*library.sample(N, torch.Generator().manual_seed(0)))
    ends = []
    for character in (humanoid, replace(humanoid, box=BOX)):
        made = make_backend("mujoco", character, N, 1)
        made.place(EVERY, start)
        if made.box:
            made.box.place(EVERY, (STANDING + 40 * torch.eye(13)[0]).repeat(N, 1))
        for _ in range(15):
            made.advance(start.joint_pos)
        ends.append(made.state().flatten())
    torch.testing.assert_close(ends[0], ends[1], atol=1e-3, rtol=1e-3)


def test_a_box_stands_until_it_is_thrown_over(backend: Backend) -> None:
    box = box_of(backend)
    states = STANDING.repeat(N, 1)
    states[1, 11] = 3.0  # rad/s about y
    box.place(EVERY, states)
    for _ in range(45):
        assert not backend.advance(torch.zeros(N, 28)).any()
    heights = box.state()[:, 2]
    assert heights[1] < 0.3
    torch.testing.assert_close(heights[[0, 2]], torch.full((2,), 0.9), atol=0.01, rtol=0)


def test_box_contacts_exclude_the_ground(backend: Backend, humanoid: Character) -> None:
    """In the default pose the arms are stretched out to the sides, the right one along -y."""
    states = STANDING.repeat(N, 1)
    states[0, 1] = -0.9
    box = box_of(backend)
    box.place(EVERY, states)
    touched = torch.zeros(N, len(humanoid.skeleton.bodies), dtype=torch.bool)
    for _ in range(3):
        backend.advance(torch.zeros(N, 28))
        touched |= box.touching()
    found = [humanoid.skeleton.bodies[i] for i in touched[0].nonzero()[:, 0].tolist()]
    assert found == ["right_hand"]
    assert not touched[1:].any()
    assert backend.touching().shape == touched.shape


def test_a_snapshot_holds_the_box(backend: Backend) -> None:
    box = box_of(backend)
    box.place(EVERY, STANDING.repeat(N, 1))
    snapshot = backend.snapshot()
    before = box.state()
    box.place(EVERY, 2 * before)
    backend.restore(snapshot)
    assert torch.equal(box.state(), before)
