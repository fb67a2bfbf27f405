"""CharacterEnv: simulated characters, whose episodes start from motion clips and end in a fall or
by time.

It has no rewards, skills, tasks or training aids. `step` resets only broken worlds
(`Backend.advance`); the caller resets all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.backend import Backend
from pretrain.sim.falls import NO_RECOVERY, Falls, Recovery, settle_on_ground
from pretrain.sim.fast_features import proprioception, style_frame
from pretrain.sim.ground import Ground, read_ground, touches_beyond_feet
from pretrain.sim.start_states import (
    StartStates,
    default_state,
    make_start_states,
    read_start_states,
    repeat_start_states,
)
from pretrain.sim.tensor_state import TensorState

STDS_PER_ACTION = 2.0  # joint target per unit of action, in stds of the clips' joint angles
MIN_RAD_PER_ACTION = 0.25  # rad, added to it for hinges that hardly move
# A PD joint lags its target by (kd + damping) / kp = 0.05 s; leading the target by this time along
# the clip's velocity compensates.
LEAD = 0.05  # s
ALL = slice(None)

Rows = Tensor | slice  # which of N worlds


def pd_target(states: CharacterState) -> Tensor:
    """Joint targets (..., J) rad that bring a body to `states` (...), with the lag of its joints
    compensated."""
    return states.joint_pos + LEAD * states.joint_vel


@dataclass(frozen=True)
class ActionScale:
    """Joint target (rad) = offset + scale * action: the clips' mean pose, and a range that covers
    their poses."""

    offset: Tensor  # (J,)
    scale: Tensor  # (J,)

    @staticmethod
    def from_library(library: MotionLibrary) -> ActionScale:
        poses = unflatten(library.frames).joint_pos
        scale = STDS_PER_ACTION * poses.std(0) + MIN_RAD_PER_ACTION
        return ActionScale(poses.mean(0), scale)

    def target(self, action: Tensor) -> Tensor:
        """Actions (..., J) -> joint targets (..., J) rad."""
        return self.offset + self.scale * action

    def action(self, target: Tensor) -> Tensor:
        """Joint targets (..., J) rad -> actions (..., J)."""
        return (target - self.offset) / self.scale


@dataclass(frozen=True)
class Outcome:
    """The result of one control step, (N,) bool each; the episodes of all other worlds continue."""

    went_down: Tensor  # on the ground since this step
    fell: Tensor  # on the ground for longer than allowed
    timed_out: Tensor
    broken: Tensor  # the simulation diverged (`Backend.advance`), and the world was reset
    recovered: Tensor  # was lying and got up
    timed_out_on_ground: Tensor  # was lying for longer than allowed


@dataclass(frozen=True)
class EpisodeConfig:
    """`clip_weights` gives the weights (C,) of the clips in which episodes begin, at every reset;
    None: the library's weights."""

    window: int  # frames of a style window
    length: int  # control steps
    recovery: Recovery = NO_RECOVERY
    clip_weights: Callable[[], Tensor] | None = None
    default_reset_prob: float = 0.0  # share of episodes that begin in the default pose


class CharacterEnv(TensorState):
    """N characters, each with its last `window` states and style frames (W)."""

    state_fields = (
        "age",
        "clip",
        "clip_time",
        "began_lying",
        "began_default",
        "states",
        "frames",
    )

    def __init__(
        self,
        backend: Backend,
        skeleton: Skeleton,
        library: MotionLibrary,
        episodes: EpisodeConfig,
        *,
        rng: Generator,
        ground: Ground | None = None,
    ):
        self.backend = backend
        self.skeleton = skeleton
        self.library = library
        self.num_envs = backend.num_envs
        self.window = episodes.window
        self.episode_length = episodes.length
        self._clip_weights = episodes.clip_weights or (lambda: library.weights)
        self._rng = rng
        self.starts = read_start_states(library, skeleton, episodes.window)
        self._lying = self._settle() if episodes.recovery.fall_init_prob else None
        self._default_reset_prob = episodes.default_reset_prob
        default = default_state(skeleton) if episodes.default_reset_prob else None
        self._default = repeat_start_states(default, skeleton, self.window) if default else None
        self.falls = Falls(
            ground or read_ground(library, skeleton), self.num_envs, episodes.recovery
        )
        self.age = torch.zeros(self.num_envs, dtype=torch.long)  # control steps since reset
        self.clip = torch.zeros(self.num_envs, dtype=torch.long)  # the clip where the episode began
        self.clip_time = torch.zeros(self.num_envs)  # s, the time in that clip where it began
        # the episode began lying, not in a state of that clip
        self.began_lying = torch.zeros(self.num_envs, dtype=torch.bool)
        self.began_default = torch.zeros(self.num_envs, dtype=torch.bool)  # in the default pose
        state = backend.state()
        # the last W states and style frames, oldest first
        self.states = torch.zeros(self.num_envs, self.window, state.flatten().shape[-1])
        frame = style_frame(skeleton, state)
        self.frames = torch.zeros(self.num_envs, self.window, frame.shape[-1])
        self.num_broken = 0  # worlds reset because they broke

    def _settle(self) -> StartStates:
        lying = settle_on_ground(self.backend, self.skeleton, self.library, self._rng)
        return repeat_start_states(lying, self.skeleton, self.window)

    def reset(self, ids: Tensor) -> None:
        """Start worlds `ids` (n,) in random states of random clips; then restart a share in the
        default pose, and a share lying (`Recovery`)."""
        if len(ids):
            clips = torch.multinomial(
                self._clip_weights(), len(ids), replacement=True, generator=self._rng
            )
            rows = self.starts.draw(clips, self._rng)
            self._begin(ids, clips, self.starts, rows)
            self._begin_default(ids)
            self._begin_lying(self.falls.draw_fall_init(ids, self._rng))

    def begin(self, ids: Tensor, clips: Tensor, times: Tensor) -> None:
        """Start worlds `ids` (n,) in clips (n,) at times (n,) s, with the frames before."""
        window = self.library.windows(clips, times, self.window)
        starts = make_start_states(window, self.skeleton, times, torch.ones_like(ids), CONTROL_RATE)
        self._begin(ids, clips, starts, torch.arange(len(ids)))

    def _begin(self, ids: Tensor, clips: Tensor, starts: StartStates, rows: Tensor) -> None:
        """Start worlds `ids` (n,) in `rows` (n,) of `starts`, under clips (n,)."""
        states = starts.states.index_select(0, rows)
        self.backend.place(ids, unflatten(states[:, -1]))
        self.states[ids] = states
        self.frames[ids] = starts.frames.index_select(0, rows)
        self.age[ids] = 0
        self.clip[ids] = clips
        self.clip_time[ids] = starts.times[rows]
        self.began_lying[ids] = False
        self.began_default[ids] = False
        self.falls.begin(ids, clips)

    def _begin_default(self, ids: Tensor) -> None:
        """Start a share of worlds `ids` (n,) in the default pose, under the clips they have."""
        if self._default:
            chosen = ids[torch.rand(len(ids), generator=self._rng) < self._default_reset_prob]
            rows = torch.zeros_like(chosen)
            self._begin(chosen, self.clip[chosen], self._default, rows)
            self.began_default[chosen] = True

    def _begin_lying(self, ids: Tensor) -> None:
        """Start worlds `ids` (n,) lying, under one of the clips that rise; without any, under the
        clips they have."""
        if len(ids) and self._lying:
            rising = self.falls.ground.rising.nonzero()[:, 0]
            clips = self.clip[ids]
            if len(rising):
                clips = rising[torch.randint(len(rising), ids.shape, generator=self._rng)]
            rows = self._lying.draw(torch.zeros_like(ids), self._rng)
            self._begin(ids, clips, self._lying, rows)
            self.began_lying[ids] = True

    def step(self, targets: Tensor, clips: Tensor | None = None) -> Outcome:
        """One control step of every world towards joint targets (N, J) rad.

        The clips (N,) that the worlds follow define falls (`Falls.update`)."""
        broken = self.backend.advance(targets)
        if broken.any():  # reset at once, so that no NaN gets into the features
            self.num_broken += int(broken.sum())
            self.reset(broken.nonzero()[:, 0])
        self.age += 1
        state = self.backend.state()
        self.states = torch.cat([self.states[:, 1:], state.flatten()[:, None]], 1)
        self.frames = torch.cat([self.frames[:, 1:], style_frame(self.skeleton, state)[:, None]], 1)
        # a world reset above still has the broken state's contacts, so the first step of an episode
        # counts none
        touching = self.backend.touching() & (self.age > 1)[:, None]
        falls = self.falls.update(touching, state.root_pos[:, 2], clips)
        timed_out = self.age >= self.episode_length
        return Outcome(
            went_down=falls.went_down,
            fell=falls.fallen & ~broken,
            timed_out=timed_out & ~falls.fallen & ~broken,
            broken=broken,
            recovered=falls.recovered,
            timed_out_on_ground=falls.timed_out,
        )

    def state(self) -> CharacterState:
        """States of all worlds, (N,)."""
        return self.backend.state()

    def touches(self) -> Tensor:
        """Worlds where other bodies than the feet touched the ground in the last step, (N,)
        bool."""
        return touches_beyond_feet(self.backend.touching(), self.skeleton)

    def obs(self, ids: Rows = ALL) -> Tensor:
        """The observations of worlds `ids` (n,), (n, 13 + 2 J)."""
        return proprioception(self.backend.state()[ids])

    def windows(self, ids: Rows = ALL) -> Tensor:
        """Style windows of worlds `ids` (n,) up to now, (n, W * F)."""
        return self.frames[ids].flatten(1)

    def snapshot(self) -> dict[str, Any]:
        return {
            **super().snapshot(),
            "broken": torch.tensor(self.num_broken),
            "rng": self._rng.get_state(),
            "engine": self.backend.snapshot(),
            "falls": self.falls.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        self.num_broken = int(snapshot["broken"])
        self._rng.set_state(snapshot["rng"])
        self.backend.restore(snapshot["engine"])
        self.falls.restore(snapshot["falls"])
