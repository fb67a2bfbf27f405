"""States of clips at any time, compiled: `blend_states` of `pretrain/motion/library.py`."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from pretrain.compiled.kernel import compile_kernel

F = np.float32
NEARLY_EQUAL = F(1e-4)  # sine of the angle below which slerp is linear


def blend_states(earlier: Tensor, later: Tensor, shares: Tensor) -> Tensor:
    """Flat states (n, S) between `earlier` and `later` (n, S), at `shares` (n,) of the way: on
    straight lines, the rotation of the root on the shorter arc."""
    states = torch.empty_like(earlier)
    _blend(earlier.numpy(), later.numpy(), shares.numpy(), states.numpy())
    return states


@compile_kernel
def _blend(earlier, later, shares, states) -> None:
    for n in range(len(states)):
        a = earlier[n]
        b = later[n]
        share = shares[n]
        for i in range(states.shape[1]):
            states[n, i] = a[i] + share * (b[i] - a[i])
        _blend_rotation(a, b, share, states[n])


@compile_kernel
def _blend_rotation(a, b, share, state) -> None:
    """As `rotations.slerp`, of the root rotations."""
    dot = a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6]
    sign = F(-1) if dot < 0 else F(1)
    angle = math.acos(min(abs(dot), F(1)))
    sine = math.sin(angle)
    near = sine < NEARLY_EQUAL
    safe = F(1) if near else sine
    to_a = F(1) - share if near else math.sin((F(1) - share) * angle) / safe
    to_b = sign * (share if near else math.sin(share * angle) / safe)
    w = to_a * a[3] + to_b * b[3]
    x = to_a * a[4] + to_b * b[4]
    y = to_a * a[5] + to_b * b[5]
    z = to_a * a[6] + to_b * b[6]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    state[3] = w / length
    state[4] = x / length
    state[5] = y / length
    state[6] = z / length
