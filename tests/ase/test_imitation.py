"""What being at the clip's moment pays."""

from __future__ import annotations

import math

import pytest
import torch

from pretrain.ase.imitation import imitation_reward
from pretrain.rl.rollout import Rollout


def test_all_is_paid_where_the_clip_is_and_less_with_distance():
    nothing, flag = torch.zeros(1, 3), torch.zeros(1, 3, dtype=torch.bool)
    rollout = Rollout({}, {}, nothing, nothing, nothing, flag, flag, {"apart": torch.tensor([[0.0, 0.5, 50.0]])})
    assert imitation_reward(0.5)(rollout)[0].tolist() == pytest.approx([1.0, math.exp(-1), 0.0])
