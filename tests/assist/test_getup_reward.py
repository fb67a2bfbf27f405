"""The get-up reward: height and uprightness in get-up clips, and 1 in all others."""

from __future__ import annotations

import torch

from pretrain.assist.getup_reward import getup_reward
from pretrain.rl.rollout import Rollout
from pretrain.sim.ground import read_ground


def test_getup_reward_grows_with_height_up_to_standing_upright(every_clip, skeleton):
    ground = read_ground(every_clip.library, skeleton)
    names = every_clip.library.names
    rising = names.index("getup_faceup")
    walk = names.index("walk")
    height = ground.standing * torch.tensor([[0.0, 0.2, 1.0, 1.3, 0.2, 1.0, 1.0]])
    clips = torch.tensor([[rising, rising, rising, rising, walk, rising, rising]])
    obs = torch.zeros(1, 7, 7)
    obs[..., 0] = height
    obs[..., 6] = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, -1.0])
    nothing = torch.zeros_like(height)
    flag = torch.zeros_like(height, dtype=torch.bool)
    rollout = Rollout(
        {}, {"obs": obs}, nothing, nothing, nothing, nothing, flag, flag, flag, {"z_clip": clips}
    )
    torch.testing.assert_close(
        getup_reward(ground)(rollout), torch.tensor([[0.0, 0.2, 1.0, 1.0, 1.0, 0.5, 0.0]])
    )
