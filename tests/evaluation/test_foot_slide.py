"""Foot slide: the speed of feet in contact."""

from __future__ import annotations

import torch

from pretrain.characters.state import unflatten
from pretrain.evaluation.foot_slide import SPAN, Feet, foot_slide, read_feet

STEPS = 60
UP = torch.ones(STEPS, 1, dtype=torch.bool)


def feet_at(speed: float) -> Feet:
    """Two feet of one world that move ahead at `speed` m/s."""
    pos = torch.zeros(STEPS, 1, 2, 2)
    pos[..., 0] = speed / 30 * torch.arange(STEPS)[:, None, None]
    return Feet(pos, torch.ones(STEPS, 1, 2, dtype=torch.bool))


def test_feet_that_slide_have_their_speed():
    for speed in (0.0, 0.3):
        torch.testing.assert_close(foot_slide(feet_at(speed), UP), torch.tensor([speed]))


def test_feet_of_a_short_clip_have_no_speed():
    feet = feet_at(0.3)[:6, :]
    assert foot_slide(feet, UP[:6]).isnan().all()


def test_feet_that_tremble_on_the_spot_hardly_slide():
    feet = feet_at(0.0)
    feet.pos[::2, ..., 1] += 0.003
    assert foot_slide(feet, UP) == 0  # from one control step to the next they move at 0.09 m/s


def test_feet_in_the_air_and_worlds_that_are_down_do_not_count():
    feet = feet_at(0.3)
    feet.pos[:, :, 1] = 0.0
    feet.stands[:, :, 0] = False
    assert foot_slide(feet, UP) == 0
    feet = feet_at(0.3)
    feet.pos[30:] = feet.pos[30]
    up = UP.clone()
    up[:30] = False
    assert foot_slide(feet, up) == 0
    assert foot_slide(feet, ~UP).isnan().all()


def test_a_span_with_a_step_in_it_does_not_count():
    feet = feet_at(0.0)
    feet.pos[30:, ..., 0] += 0.4
    feet.stands[29] = False
    assert foot_slide(feet, UP) == 0
    feet.stands[29] = True
    assert foot_slide(feet, UP) > 0
    assert STEPS > 2 * SPAN


def test_feet_stand_during_most_of_a_walk_and_little_of_a_run(library, skeleton):
    def feet_of(name: str) -> Feet:
        clip = library.names.index(name)
        first = int(library.starts[clip])
        return read_feet(
            skeleton, unflatten(library.frames[first : first + int(library.lengths[clip])])
        )

    walk = feet_of("walk")
    assert walk.pos.shape == (len(walk.stands), 2, 2)
    assert 0.5 < walk.stands.float().mean() < 0.75
    assert walk.stands.any(-1).float().mean() > 0.9
    assert feet_of("run").stands.float().mean() < 0.25
    raised = unflatten(library.frames[:10] + torch.eye(library.frames.shape[1])[2])
    assert not read_feet(skeleton, raised).stands.any()
