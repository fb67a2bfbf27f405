"""Recording: the motion of N worlds that each hold one skill."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.evaluation.falls import FallCounter
from pretrain.evaluation.foot_slide import Feet, read_feet
from pretrain.evaluation.rollout import Act, hold_skill
from pretrain.sim.env import CharacterEnv
from pretrain.sim.velocity_range import level_velocity


@dataclass(frozen=True)
class Recording:
    """T control steps of N worlds, with W frames per style window."""

    frames: (
        Tensor  # (W - 1 + T, N, F) style frames; the first W - 1 are those that led to the start
    )
    velocity: Tensor  # (T, N, 3) forward m/s, left m/s, turn rate rad/s
    down: Tensor  # (T, N) bool: down under the skill's clip, or broken
    feet: Feet  # (T, N)
    falls: FallCounter

    @property
    def steps(self) -> int:
        return len(self.velocity)

    def windows(self, worlds: slice | Tensor, since: int = 0) -> Tensor:
        """Style windows of n worlds after each step from `since` on, (T - since, n, W * F)."""
        length = len(self.frames) - self.steps + 1
        parts = self.frames[since:, worlds].unfold(0, length, 1)  # (T - since, n, F, W)
        return parts.transpose(-1, -2).flatten(-2)

    def split(self, counts: list[int]) -> list[Recording]:
        """Split the worlds into consecutive groups of `counts`."""
        feet = zip(self.feet.pos.split(counts, 1), self.feet.stands.split(counts, 1), strict=True)
        parts = zip(
            self.frames.split(counts, 1),
            self.velocity.split(counts, 1),
            self.down.split(counts, 1),
            [Feet(*part) for part in feet],
            self.falls.split(counts),
            strict=True,
        )
        return [Recording(*part) for part in parts]


def record(act: Act, env: CharacterEnv, z: Tensor, clips: Tensor, steps: int) -> Recording:
    """Hold z (N, D) for `steps` from the worlds' present states; `clips` (N,) define falls."""
    frames = list(env.frames[:, 1:].transpose(0, 1).clone())
    velocity = []
    down = []
    feet = []
    falls = FallCounter(env.num_envs)
    for outcome in hold_skill(act, env, z, clips, steps):
        falls.update(env.falls.steps_down, outcome.broken)
        frames.append(env.frames[:, -1].clone())
        velocity.append(level_velocity(env.state()))
        down.append(env.falls.is_down | outcome.broken)
        feet.append(read_feet(env.skeleton, env.state()))
    return Recording(
        torch.stack(frames),
        torch.stack(velocity),
        torch.stack(down),
        Feet(torch.stack([x.pos for x in feet]), torch.stack([x.stands for x in feet])),
        falls,
    )
