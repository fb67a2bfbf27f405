"""Independent streams of random numbers from one seed."""

from __future__ import annotations

import torch
from torch import Generator


def spawn_generators(seed: int, count: int) -> list[Generator]:
    """`count` generators; their seeds are drawn from a generator with `seed`."""
    seeds = torch.randint(2**62, (count,), generator=Generator().manual_seed(seed))
    return [Generator().manual_seed(each) for each in seeds.tolist()]
