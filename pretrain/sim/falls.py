"""Who is down, who has fallen for good, and how a character comes to lie.

A body on the ground that the clip of the moment keeps off it is a fall. In a protected episode it is one only if the
character is not back where that clip is within `patience`, so that getting up can be learned. (As nv-tlabs/ASE trains
recovery: some episodes begin lying, some are not ended by a fall.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import Backend
from pretrain.sim.ground import LYING, Ground
from pretrain.sim.stateful import TensorState

LIMP = 60  # control steps of random targets after which a character lies
TWITCH = 0.5  # rad, their spread
RISEN = 0.9  # of the usual root height: who lay and is lower has not risen yet


@dataclass(frozen=True)
class Protection:
    """How patient to be, with how many. The default is with nobody: the first forbidden contact ends an episode."""

    patience: int = 0  # control steps
    share: float = 0.0  # of episodes
    lying: float = 0.0  # share of episodes that begin lying, which is to begin in a clip that rises


NOBODY = Protection()


class Falls(TensorState):
    """The steps that each of N worlds has been down, and how many it may."""

    state_fields = ("down", "patience", "lay")

    def __init__(self, ground: Ground, num_envs: int, protection: Protection):
        self.ground, self.protection = ground, protection
        self.down = torch.zeros(num_envs, dtype=torch.long)
        self.patience = torch.zeros(num_envs, dtype=torch.long)
        self.lay = torch.zeros(num_envs, dtype=torch.bool)  # has been low on the ground since it is down
        self.rose = self.stayed = self.lay  # of those, who came up in the last step, and who was down for too long

    def begin(self, ids: Tensor, clips: Tensor) -> None:
        """Worlds `ids` (n,) begin in clips (n,), and have time to rise in those that rise."""
        rising = self.ground.rising[clips]
        self.down[ids] = rising.long()
        self.lay[ids] = False
        self.patience[ids] = torch.where(rising | (self.protection.share == 1.0), self.protection.patience, 0)

    def draw(self, ids: Tensor, rng: Generator) -> Tensor:
        """Which of `ids` (n,) are to begin lying, (m,). Others of them may be protected."""
        of = self.protection
        if of.share in (0.0, 1.0) and not of.lying:  # nobody, or everybody: nothing is left to chance
            return ids[:0]
        chance = torch.rand(len(ids), generator=rng)
        self.patience[ids[chance < of.lying + of.share]] = of.patience
        return ids[chance < of.lying]

    def protect(self, ids: Tensor, before: Tensor, after: Tensor) -> None:
        """Worlds `ids` (n,) go from moving like clips `before` (n,) to moving like `after` (n,): what may lie in one and
        not in the other has time to get up, and has not fallen."""
        allowed = self.ground.allowed
        rises = ids[(allowed[before] & ~allowed[after]).any(-1)]
        self.patience[rises] = self.protection.patience
        self.down[rises] = self.down[rises].clamp_min(1)

    def see(self, touching: Tensor, height: Tensor, like: Tensor | None) -> Tensor:
        """Bodies on the ground (N, B), root heights (N,) and the clips that count (N,) -> who has fallen for good (N,).

        Without a clip, what all clips put on the ground may be there: the feet.
        """
        of = self.ground
        allowed, lowest = (of.allowed.all(0), of.lowest.max()) if like is None else (of.allowed[like], of.lowest[like])
        forbidden = (touching & ~allowed).any(-1)
        # who lay is up again only when it stands, also under a clip that passes through lower poses; but may crawl if asked
        to_stand = ~allowed.all(-1)
        enough = torch.where(self.lay & to_stand, RISEN * of.standing, lowest)
        low = (self.down > 0) & (height < enough)
        self.down = torch.where(forbidden | low, self.down + 1, 0)
        fallen = self.down > self.patience
        self.rose, self.stayed = self.lay & (self.down == 0) & to_stand, self.lay & fallen
        self.lay = (self.lay | (height < LYING * of.standing)) & (self.down > 0)
        return fallen


def lying(backend: Backend, skeleton: Skeleton, library: MotionLibrary, rng: Generator) -> CharacterState:
    """Where every world's character comes to lie, from a clip's state and with random targets.

    A world that explodes, as from a clip that no body can follow, goes on from where another one is.
    """
    everyone = torch.arange(backend.num_envs)
    backend.place(everyone, library.at(*library.sample(backend.num_envs, rng)))
    for _ in range(LIMP):
        broken = backend.advance(TWITCH * torch.randn(backend.num_envs, skeleton.num_hinges, generator=rng))
        if broken.all():
            raise ValueError("no character comes to lie: from none of its clips can the body be simulated")
        if broken.any():
            sane = (~broken).nonzero()[:, 0]
            ids = broken.nonzero()[:, 0]
            backend.place(ids, backend.state()[sane[torch.randint(len(sane), ids.shape, generator=rng)]])
    return backend.state()
