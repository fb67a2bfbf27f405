"""The blend of a world's reference from one clip to the next."""

from __future__ import annotations

import torch

from pretrain.assist.reference_blend import ReferenceBlend
from pretrain.motion.clip import CONTROL_RATE

STEP = 1 / CONTROL_RATE


def test_a_previous_clip_that_ends_continues_from_its_restart_time():
    """As the reference of a world whose skill does not change does."""
    blend = ReferenceBlend(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.5]), 2, steps=30)
    both = torch.arange(2)
    blend.begin(both, both, torch.tensor([0.5, 2.0 + STEP]), torch.tensor([True, True]))
    torch.testing.assert_close(blend.phase, torch.tensor([0.5, 0.5 + STEP]))
    blend.advance()
    torch.testing.assert_close(blend.phase, torch.tensor([0.5 + STEP, 0.5 + 2 * STEP]))
    blend.phase[:] = torch.tensor([1.0, 2.0])
    blend.advance()
    torch.testing.assert_close(blend.phase, torch.tensor([STEP, 0.5 + STEP]))


def test_the_share_of_the_new_clip_grows_to_1_over_the_blend():
    blend = ReferenceBlend(torch.tensor([1.0]), torch.zeros(1), 2, steps=4)
    worlds = torch.arange(2)
    blend.begin(worlds, torch.zeros(2, dtype=torch.long), torch.zeros(2), worlds == 0)
    shares = []
    for _ in range(5):
        shares.append(blend.share.tolist())
        blend.advance()
    assert shares == [[0.0, 1.0], [0.25, 1.0], [0.5, 1.0], [0.75, 1.0], [1.0, 1.0]]
