"""How fast limbs move, against motions of known speed."""

from __future__ import annotations

import pytest
import torch

from pretrain.characters.character import load_character
from pretrain.evaluation.limb_speed import limb_speed, required_limb_speed

SKELETON = load_character("humanoid").skeleton
KEYS = 3 * len(SKELETON.key_bodies)


def moving(speed: float, steps: int = 90) -> torch.Tensor:
    """Windows (T, 1, 7 + KEYS) in which every key body moves up at `speed`, m/s."""
    windows = torch.zeros(steps, 1, 7 + KEYS)
    height = speed * torch.arange(steps) / 30
    windows[:, 0, 7 + 2 :: 3] = height[:, None]
    windows[:, 0, :7] = torch.randn(steps, 7, generator=torch.Generator().manual_seed(0))
    return windows


def test_speed_is_that_of_the_key_bodies() -> None:
    torch.testing.assert_close(limb_speed(moving(0.4), SKELETON), torch.full((90, 1), 0.4))


def test_speed_is_averaged_over_the_last_two_seconds() -> None:
    windows = torch.cat([moving(0.6, 90), moving(0.6, 90)[-1:].expand(90, -1, -1)])
    speed = limb_speed(windows, SKELETON)[:, 0]
    assert speed[89] == pytest.approx(0.6, abs=1e-4)
    assert speed[119] == pytest.approx(0.3, abs=0.01)
    assert speed[-1] == pytest.approx(0.0, abs=1e-4)


def test_single_window_requires_no_limb_speed() -> None:
    assert required_limb_speed(moving(0.4, steps=1)[:, 0], SKELETON) == 0.0


@pytest.mark.parametrize(("speed", "required"), [(0.4, 0.2), (0.04, 0.0)])
def test_required_limb_speed_is_half_the_clips_or_0_for_a_stand(
    speed: float, required: float
) -> None:
    assert required_limb_speed(moving(speed)[:, 0], SKELETON) == pytest.approx(required, abs=1e-3)
