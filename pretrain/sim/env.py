"""CharacterEnv: a body under control, episodes that start from motion clips and end in a fall or in time.

It knows nothing of rewards, skills or tasks. `step` resets only worlds whose state is no longer finite, which nobody may read;
all others are the caller's to reset.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.assist.curriculum import Curriculum, leading_force, paces, upright_torque
from pretrain.assist.getup import GetUpAssist
from pretrain.assist.reference_tracker import ALL, NONE, ReferenceTracker, Rows
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, unflat
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import Backend
from pretrain.sim.falls import NOBODY, Falls, Protection, lying
from pretrain.sim.features import proprioception, style_frame
from pretrain.sim.ground import Ground, ground_of
from pretrain.sim.starts import Starts, clip_starts, looked_at, still_starts

REACH, LEAST_REACH = 2.0, 0.25  # of an action: spreads of the clips' joint angles, and rad, for hinges that hardly move
ENGINE, CURRICULUM, FALLS, LIFT, GUIDE = "engine/", "curriculum/", "falls/", "lift/", "guide/"  # parts of a snapshot


@dataclass(frozen=True)
class ActionScale:
    """Joint target (rad) = offset + scale * action: the clips' mean pose, and a range that covers what they do."""

    offset: Tensor  # (J,)
    scale: Tensor  # (J,)

    @staticmethod
    def of(library: MotionLibrary) -> ActionScale:
        poses = unflat(library.frames).joint_pos
        return ActionScale(poses.mean(0), REACH * poses.std(0) + LEAST_REACH)

    def target(self, action: Tensor) -> Tensor:
        return self.offset + self.scale * action

    def action(self, target: Tensor) -> Tensor:
        return (target - self.offset) / self.scale


@dataclass(frozen=True)
class Outcome:
    """What one control step led to, (N,) bool each; a world that is none of these goes on."""

    fell: Tensor
    timed_out: Tensor
    broken: Tensor  # the state was no longer finite: it is in a clip's state again


class CharacterEnv:
    """N characters, each with the last `window` style frames (W) it passed through; an episode lasts `episode_length` control
    steps."""

    def __init__(
        self,
        backend: Backend,
        skeleton: Skeleton,
        library: MotionLibrary,
        *,
        window: int,
        episode_length: int,
        rng: Generator,
        curriculum: Curriculum | None = None,
        protection: Protection = NOBODY,
        lift: GetUpAssist | None = None,
        ground: Ground | None = None,
    ):
        self.backend, self.skeleton, self.library = backend, skeleton, library
        self.num_envs, self.window, self.episode_length = backend.num_envs, window, episode_length
        self._may_touch = torch.tensor([body in skeleton.feet for body in skeleton.bodies])
        self._rng = rng
        self._starts = clip_starts(library, skeleton, window)
        self._lying = (
            still_starts(lying(backend, skeleton, library, rng), skeleton, window) if protection.lying else None
        )
        self.falls = Falls(ground or ground_of(library, skeleton), self.num_envs, protection)
        self.curriculum = curriculum or Curriculum(library.weights, episode_length=episode_length)
        self.lift = lift or GetUpAssist(torch.zeros(len(library.names)))
        self.guide = ReferenceTracker(library, self._starts, self.falls.ground.rising, self.num_envs)
        self._pace = paces(library)
        self._held = False
        self.age = torch.zeros(self.num_envs, dtype=torch.long)  # steps since reset
        self.clip = torch.zeros(self.num_envs, dtype=torch.long)  # where the episode started
        state = backend.state()
        self.states = torch.zeros(self.num_envs, window, state.flat().shape[-1])  # the last W, oldest first
        self.frames = torch.zeros(self.num_envs, window, style_frame(skeleton, state).shape[-1])
        self.broken = 0  # worlds reset because their state was not finite

    def reset(self, ids: Tensor) -> None:
        """Start worlds `ids` (n,) in random states of random clips, or lying where some are to begin so."""
        if len(ids):
            weights = self.curriculum.weights
            clips = torch.multinomial(weights, len(ids), replacement=True, generator=self._rng)
            rows = self._starts.draw(clips, self._rng)
            self._begin(ids, clips, self._starts, rows)
            self._lay(self.falls.draw(ids, self._rng))

    def begin(self, ids: Tensor, clips: Tensor, times: Tensor) -> None:
        """Start worlds `ids` (n,) in clips (n,) at times (n,) s, with the frames that led there."""
        window = self.library.windows(clips, times, self.window)
        starts = looked_at(window, self.skeleton, times, torch.ones_like(ids), CONTROL_RATE)
        self._begin(ids, clips, starts, torch.arange(len(ids)))

    def _begin(self, ids: Tensor, clips: Tensor, starts: Starts, rows: Tensor) -> None:
        """In `rows` (n,) of `starts`, as in clips (n,)."""
        states = starts.states.index_select(0, rows)
        self.backend.place(ids, unflat(states[:, -1]))
        self.states[ids], self.frames[ids] = states, starts.frames.index_select(0, rows)
        self.age[ids], self.clip[ids] = 0, clips
        self.falls.begin(ids, clips)
        self.guide.begin(ids, clips, starts.times[rows])

    def _lay(self, ids: Tensor) -> None:
        """Worlds `ids` (n,) lie, as if about to begin one of the clips that rise."""
        if len(ids) and self._lying:
            rising = self.falls.ground.rising.nonzero()[:, 0]
            clips = rising[torch.randint(len(rising), ids.shape, generator=self._rng)]
            rows = self._lying.draw(torch.zeros_like(ids), self._rng)
            self._begin(ids, clips, self._lying, rows)
            self.guide.clip[ids] = NONE

    def follow(self, like: Tensor) -> None:
        """The clocks of the next step, in clips `like` (N,): for hands that lead, and for who asks how far off worlds are."""
        self.guide.advance(like, self.falls.down > 0, self.windows(), self.backend.state())

    def step(self, targets: Tensor, like: Tensor | None = None) -> Outcome:
        """One control step of every world towards joint targets (N, J) rad.

        What counts as a fall is up to the clips (N,) that the worlds are to move `like`.
        """
        self._hold(self.clip if like is None else like)
        broken = self.backend.advance(targets)
        if broken.any():  # put it into a sane state at once, so that nothing downstream meets a NaN
            self.broken += int(broken.sum())
            self.reset(broken.nonzero()[:, 0])
        self.age += 1
        state = self.backend.state()
        self.states = torch.cat([self.states[:, 1:], state.flat()[:, None]], 1)
        self.frames = torch.cat([self.frames[:, 1:], style_frame(self.skeleton, state)[:, None]], 1)
        touching = self.backend.touching() & (self.age > 1)[:, None]
        fell = self.falls.see(touching, state.root_pos[:, 2], like)
        self.lift.saw(self.guide.clip.clamp_min(0), self.falls.rose, self.falls.stayed)
        timed_out = self.age >= self.episode_length
        return Outcome(fell=fell & ~broken, timed_out=timed_out & ~fell & ~broken, broken=broken)

    def _hold(self, like: Tensor) -> None:
        """Push every root as the curriculum says. Who stands and is to move `like` a steady clip (N,) is held upright and
        driven at the clip's pace; everyone else is led to the moment that its clock points at.

        Once more after the last hand has let go, so that nothing of it is left behind.
        """
        before, after = self.curriculum.assist[self.clip], self.curriculum.assist[like]
        holds = bool(self.curriculum.assist.any()) or bool(self.lift.strength.any())
        if holds or self._held:
            state, down = self.backend.state(), self.falls.down > 0
            force = after[:, None] * leading_force(state, self._pace[like])
            torque = torch.maximum(before, after)[:, None] * upright_torque(state)
            wrench = torch.cat([force, torque], -1)
            led = (down | ~self.falls.ground.steady[like]).nonzero()[:, 0]
            wrench[led] = self.firmness(like)[led, None] * self.guide.wrench(led, state[led])
            self.backend.push(torch.arange(self.num_envs), self.skeleton.bodies[0], wrench)
        self._held = holds

    def firmness(self, like: Tensor) -> Tensor:
        """How firmly the worlds are led, as in clips `like` (N,) or up, where they are down or asked to rise, (N,)."""
        rises = (self.falls.down > 0) | self.falls.ground.rising[like]
        return torch.where(rises, self.lift.strength[self.guide.clip], self.curriculum.assist[like])

    def state(self) -> CharacterState:
        return self.backend.state()

    def touches(self) -> Tensor:
        """Worlds where more than the feet met the ground in the last step, (N,) bool."""
        return (self.backend.touching() & ~self._may_touch).any(-1)

    def obs(self, ids: Rows = ALL) -> Tensor:
        """Of worlds `ids` (n,), (n, 13 + 2 J)."""
        return proprioception(self.backend.state()[ids])

    def windows(self, ids: Rows = ALL) -> Tensor:
        """Style windows of worlds `ids` (n,) up to now, (n, W * F)."""
        return self.frames[ids].flatten(1)

    def snapshot(self) -> dict[str, Tensor]:
        """Everything `restore` needs to go on bit for bit."""
        own = {name: getattr(self, name).clone() for name in ("age", "clip", "states", "frames")}
        counters = {"broken": torch.tensor(self.broken), "held": torch.tensor(self._held), "rng": self._rng.get_state()}
        return {
            **own,
            **counters,
            **{ENGINE + k: v for k, v in self.backend.snapshot().items()},
            **{CURRICULUM + k: v for k, v in self.curriculum.snapshot().items()},
            **{FALLS + k: v for k, v in self.falls.snapshot().items()},
            **{LIFT + k: v for k, v in self.lift.snapshot().items()},
            **{GUIDE + k: v for k, v in self.guide.snapshot().items()},
        }

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.backend.restore(_part(snapshot, ENGINE))
        self.curriculum.restore(_part(snapshot, CURRICULUM))
        self.falls.restore(_part(snapshot, FALLS))
        self.lift.restore(_part(snapshot, LIFT))
        self.guide.restore(_part(snapshot, GUIDE))
        for name in ("age", "clip", "states", "frames"):
            setattr(self, name, snapshot[name].clone())
        self.broken, self._held = int(snapshot["broken"]), bool(snapshot["held"])
        self._rng.set_state(snapshot["rng"])


def _part(snapshot: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in snapshot.items() if k.startswith(prefix)}
