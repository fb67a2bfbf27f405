"""Switching: whether a library, started in one clip, performs another clip under its z."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.evaluation.intervals import Interval, share_interval
from pretrain.evaluation.on_clip import on_clip
from pretrain.evaluation.recording import Recording, record
from pretrain.evaluation.rollout import start_anywhere
from pretrain.evaluation.setup import Setup
from pretrain.motion.clip import control_steps

SWITCH_SECONDS = 4.0  # after the switch
JUDGED_FROM = 2.0  # s after the switch
MAX_PAIRS = 1024  # of more, this many are drawn at random


@dataclass(frozen=True)
class Switches:
    """P ordered pairs of clips, each in R worlds; clips by their number in `Setup.targets`."""

    start: Tensor  # (P,) the clip of the start states
    target: Tensor  # (P,) the clip whose z is held
    success: Tensor  # (P, R) bool
    recording: Recording

    @property
    def repeats(self) -> int:
        return self.success.shape[1]


def switch_rollouts(setup: Setup, rng: Generator) -> Switches:
    """Every pair of different clips: begun anywhere in the first, under the own z of the second.

    A switch is a success if in seconds 2 to 4 the character is on the second clip (`on_clip`) for
    half of the time or more, and is never down."""
    start, target = _pairs(len(setup.targets), rng)
    repeats = setup.conditions.pair_repeats(len(start))
    world_target = target.repeat_interleave(repeats)
    clips = setup.originals[world_target]
    env = setup.make_env(len(world_target), SWITCH_SECONDS, rng)
    start_anywhere(env, setup.originals[start].repeat_interleave(repeats), rng)
    steps = control_steps(SWITCH_SECONDS)
    recording = record(setup.skills.act, env, setup.own_z[clips], clips, steps)
    success = _success(setup, recording, world_target).view(-1, repeats)
    return Switches(start, target, success, recording)


def _pairs(clips: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """Ordered pairs of different clips, at most MAX_PAIRS of them, (P,) and (P,)."""
    pairs = torch.cartesian_prod(torch.arange(clips), torch.arange(clips))
    different = pairs[pairs[:, 0] != pairs[:, 1]]
    if len(different) > MAX_PAIRS:
        chosen = torch.randperm(len(different), generator=rng)[:MAX_PAIRS]
        different = different[chosen.sort().values]
    return different[:, 0], different[:, 1]


def _success(setup: Setup, recording: Recording, target: Tensor) -> Tensor:
    """(N,) bool for `target` (N,), clips by their number in `Setup.targets`."""
    since = control_steps(JUDGED_FROM)
    near = torch.zeros(len(target))
    for clip in range(len(setup.targets)):
        worlds = (target == clip).nonzero()[:, 0]
        windows = recording.windows(worlds, since)
        within = on_clip(setup, clip, windows, recording.velocity[:, worlds])
        near[worlds] = within.float().mean(0)
    return (near >= 0.5) & ~recording.down[since:].any(0)


def switch_success(switches: Switches) -> Interval:
    """Share of all worlds; a library of one clip has none."""
    return share_interval(switches.success.flatten().float())


def switch_matrix(setup: Setup, switches: Switches) -> dict[str, dict[str, float]]:
    """Success by start clip, then by target clip."""
    names = [target.name for target in setup.targets]
    shares = switches.success.float().mean(1).tolist()
    matrix: dict[str, dict[str, float]] = {name: {} for name in names}
    pairs = zip(switches.start.tolist(), switches.target.tolist(), shares, strict=True)
    for start, target, share in pairs:
        matrix[names[start]][names[target]] = share
    return matrix
