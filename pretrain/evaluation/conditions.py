"""Conditions of a card's measures. All cards share the defaults, to be comparable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conditions:
    """`episodes` sets how many worlds each measure has; the other numbers follow from it."""

    episodes: int = 1024  # under random skills
    seed: int = 1234
    seconds: float = 10.0  # of an episode
    longest_skill: float = 5.0  # s between two random skills, at most
    engine: str = "mujoco"
    threads: int = 0  # 0: all that the process may use

    @property
    def repeats(self) -> int:
        """Worlds under each clip's own z."""
        return min(16, max(2, self.episodes // 16))

    def pair_repeats(self, pairs: int) -> int:
        """Worlds for each of `pairs` pairs of clips."""
        return max(1, min(8, self.episodes // 32, 2 * self.episodes // max(pairs, 1)))

    @property
    def latents(self) -> int:
        """Random z that are held, to measure which can be distinguished."""
        return min(64, max(4, self.episodes // 16))

    @property
    def disturbed(self) -> int:
        """Worlds under each disturbance."""
        return min(128, self.episodes)


COMMON = Conditions()
QUICK = Conditions(episodes=128)  # for a run in training
