"""Limb speed: how fast head, hands and feet move relative to the root.

A body at rest in one frame of a jump or of a slow side step is within tau of that clip, and at its
velocity. Its limbs do not move as the clip's do."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.motion.clip import CONTROL_RATE, control_steps
from pretrain.sim.features import key_offsets
from pretrain.sim.velocity_range import trailing_mean

AVERAGED_SECONDS = 2.0
ENOUGH = 0.5  # of the clip's own speed
STILL = 0.05  # m/s: a clip below it may be performed by a body at rest


def limb_speed(windows: Tensor, skeleton: Skeleton) -> Tensor:
    """Mean speed of the key bodies in the root's heading frame, averaged over the last
    AVERAGED_SECONDS: style windows (T, n, W * F), one control step apart -> (T, n) m/s. A single
    window, as of a clip of a few frames, is at rest."""
    if len(windows) == 1:
        return torch.zeros(windows.shape[:2])
    speed = key_offsets(skeleton, windows).diff(dim=0).norm(dim=-1).mean(-1) * CONTROL_RATE
    speed = torch.cat([speed[:1], speed])
    return trailing_mean(speed[..., None], control_steps(AVERAGED_SECONDS))[..., 0]


def required_limb_speed(windows: Tensor, skeleton: Skeleton) -> float:
    """Limb speed, m/s, required to perform the clip with style windows (M, W * F): a share of the
    clip's lowest; 0 for a clip that is nearly at rest."""
    least = float(limb_speed(windows[:, None], skeleton).min())
    return ENOUGH * least if least > STILL else 0.0
