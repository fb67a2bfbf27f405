"""Falls: which worlds are down, which falls are final, and start states lying on the ground.

A world is down while a body not allowed by its clip is on the ground. In a clip that rises, or
after a change from a clip that lies (`allow_recovery`), that is a fall only if the character is not
up within `max_steps_down`, so that getting up can be learned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import Backend
from pretrain.sim.ground import LYING, Ground
from pretrain.sim.tensor_state import TensorState

SECONDS_TO_RISE = 4.0  # that a fallen character has to get up; the clips take 3 and 3.8
SETTLE_STEPS = 60  # control steps of random targets after which a character lies
SETTLE_TARGET_STD = 0.5  # rad, standard deviation of those targets
RISEN = 0.9  # share of the usual root height at which a character that was lying is up again


@dataclass(frozen=True)
class Recovery:
    """How long a lying character has to get up. By default not at all: the first forbidden contact
    ends an episode."""

    steps: int = 0  # control steps
    after_falls: bool = False  # also after a fall under a clip that is upright
    # share of episodes that begin lying, under a clip that rises if there is one
    fall_init_prob: float = 0.0


NO_RECOVERY = Recovery()


@dataclass(frozen=True)
class FallUpdate:
    """The result of one control step, (N,) bool each."""

    went_down: Tensor  # down since this step
    fallen: Tensor  # down for longer than it may be
    recovered: Tensor  # was lying and got up
    timed_out: Tensor  # was lying, and has fallen


class Falls(TensorState):
    """The control steps that each of N worlds has been down, and how many it may be."""

    state_fields = ("steps_down", "max_steps_down", "was_lying")

    def __init__(self, ground: Ground, num_envs: int, recovery: Recovery):
        self.ground = ground
        self.recovery = recovery
        self.steps_down = torch.zeros(num_envs, dtype=torch.long)
        self.max_steps_down = torch.zeros(num_envs, dtype=torch.long)
        self.was_lying = torch.zeros(num_envs, dtype=torch.bool)  # low since it has been down

    def begin(self, ids: Tensor, clips: Tensor) -> None:
        """Worlds `ids` (n,) begin in clips (n,). In clips that rise they begin down. These, and
        with `after_falls` all worlds, have time to get up."""
        rising = self.ground.rising[clips]
        protected = rising | self.recovery.after_falls
        self.steps_down[ids] = rising.long()
        self.was_lying[ids] = False
        self.max_steps_down[ids] = torch.where(protected, self.recovery.steps, 0)

    def draw_fall_init(self, ids: Tensor, rng: Generator) -> Tensor:
        """Which of `ids` (n,) begin lying, (m,)."""
        share = self.recovery.fall_init_prob
        if not share:
            return ids[:0]
        return ids[torch.rand(len(ids), generator=rng) < share]

    def allow_recovery(self, ids: Tensor, before: Tensor, after: Tensor) -> None:
        """Worlds `ids` (n,) change from clips `before` (n,) to clips `after` (n,). Where a body may
        be on the ground in the first and not in the second, the world is down, with time to get
        up."""
        allowed = self.ground.allowed
        rises = ids[(allowed[before] & ~allowed[after]).any(-1)]
        self.max_steps_down[rises] = self.recovery.steps
        self.steps_down[rises] = self.steps_down[rises].clamp_min(1)

    @property
    def is_down(self) -> Tensor:
        """Worlds that are down, (N,) bool."""
        return self.steps_down > 0

    def update(self, touching: Tensor, height: Tensor, clips: Tensor | None) -> FallUpdate:
        """One step with bodies on the ground (N, B), root heights (N,) m and the clips (N,) that
        the worlds follow.

        Without clips only the bodies may touch the ground that do so in all clips: the feet.
        """
        ground = self.ground
        allowed = ground.allowed.all(0) if clips is None else ground.allowed[clips]
        lowest = ground.lowest.max() if clips is None else ground.lowest[clips]
        forbidden = (touching & ~allowed).any(-1)
        # After lying only standing counts, also under a clip that passes through lower poses; but
        # under a clip that puts every body on the ground, being low is no fall.
        to_stand = ~allowed.all(-1)
        enough = torch.where(self.was_lying & to_stand, RISEN * ground.standing, lowest)
        low = self.is_down & (height < enough)
        self.steps_down = torch.where(forbidden | low, self.steps_down + 1, 0)
        fallen = self.steps_down > self.max_steps_down
        recovered = self.was_lying & ~self.is_down & to_stand
        timed_out = self.was_lying & fallen
        self.was_lying = (self.was_lying | (height < LYING * ground.standing)) & self.is_down
        return FallUpdate(self.steps_down == 1, fallen, recovered, timed_out)


def settle_on_ground(
    backend: Backend, skeleton: Skeleton, library: MotionLibrary, rng: Generator
) -> CharacterState:
    """States (N,) of characters that lie on the ground, simulated from clip states under random
    targets.

    A world that breaks continues from the state of another one. Raises ValueError if all break in
    one step."""
    all_ids = torch.arange(backend.num_envs)
    backend.place(all_ids, library.at(*library.sample(backend.num_envs, rng)))
    for _ in range(SETTLE_STEPS):
        noise = torch.randn(backend.num_envs, skeleton.num_hinges, generator=rng)
        broken = backend.advance(SETTLE_TARGET_STD * noise)
        if broken.all():
            raise ValueError(
                "no character comes to lie: from none of its clips can the body be simulated"
            )
        if broken.any():
            valid = (~broken).nonzero()[:, 0]
            ids = broken.nonzero()[:, 0]
            copied = valid[torch.randint(len(valid), ids.shape, generator=rng)]
            backend.place(ids, backend.state()[copied])
    return backend.state()
