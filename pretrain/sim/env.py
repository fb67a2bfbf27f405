"""CharacterEnv: a body under control, episodes that start from motion clips and end in a fall or in time.

It knows nothing of rewards, skills or tasks, and `step` never resets.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.motion.library import MotionLibrary
from pretrain.sim.assist import upright_torque
from pretrain.sim.backend import Backend
from pretrain.sim.features import proprioception, style_frame

ENGINE = "engine/"  # prefix of the backend's part of a snapshot


@dataclass(frozen=True)
class ActionScale:
    """Joint target (rad) = offset + scale * action: the clips' mean pose, and a range that covers what they do."""

    offset: Tensor  # (J,)
    scale: Tensor  # (J,)

    @staticmethod
    def of(library: MotionLibrary, num_hinges: int) -> ActionScale:
        poses = library.frames[:, 13 : 13 + num_hinges]
        return ActionScale(poses.mean(0), 2 * poses.std(0) + 0.25)

    def target(self, action: Tensor) -> Tensor:
        return self.offset + self.scale * action


@dataclass(frozen=True)
class Outcome:
    """What one control step led to, (N,) each; a world that is neither goes on."""

    fell: Tensor
    timed_out: Tensor
    broken: Tensor  # the state was no longer finite


class CharacterEnv:
    """N characters, each with the last W style frames it passed through."""

    def __init__(
        self,
        backend: Backend,
        skeleton: Skeleton,
        library: MotionLibrary,
        *,
        window: int,
        episode_length: int,
        rng: Generator,
    ):
        self.backend, self.skeleton, self.library = backend, skeleton, library
        self.num_envs, self.window, self.episode_length = backend.num_envs, window, episode_length
        self._may_touch = torch.tensor([body in skeleton.feet for body in skeleton.bodies])
        self._rng = rng
        self.age = torch.zeros(self.num_envs, dtype=torch.long)  # steps since reset
        self.clip = torch.zeros(self.num_envs, dtype=torch.long)  # where the episode started
        state = backend.state()
        self.states = torch.zeros(self.num_envs, window, state.flat().shape[-1])  # the last W, oldest first
        self.frames = torch.zeros(self.num_envs, window, style_frame(skeleton, state).shape[-1])
        self.assist = 0.0  # strength of the hand that holds the character upright (pretrain/sim/assist.py)
        self.broken = 0  # worlds reset because their state was not finite

    def reset(self, ids: Tensor) -> None:
        """Start worlds `ids` (n,) in random states of random clips, with the frames that led there."""
        if not len(ids):
            return
        clips, times = self.library.sample(len(ids), self._rng)
        window = self.library.windows(clips, times, self.window)
        self.backend.place(ids, window.map(lambda x: x[:, -1]))
        self.states[ids] = window.flat()
        self.frames[ids] = style_frame(self.skeleton, window)
        self.age[ids] = 0
        self.clip[ids] = clips

    def step(self, targets: Tensor) -> Outcome:
        """One control step of every world towards joint targets (N, J) rad."""
        if self.assist > 0:
            self._hold()
        broken = self.backend.advance(targets)
        if broken.any():  # put it into a sane state at once, so that nothing downstream meets a NaN
            self.broken += int(broken.sum())
            self.reset(broken.nonzero()[:, 0])
        self.age += 1
        state = self.backend.state()
        self.states = torch.cat([self.states[:, 1:], state.flat()[:, None]], 1)
        self.frames = torch.cat([self.frames[:, 1:], style_frame(self.skeleton, state)[:, None]], 1)
        fell = (self.backend.touching() & ~self._may_touch).any(-1) & (self.age > 1)
        timed_out = self.age >= self.episode_length
        return Outcome(fell=fell & ~broken, timed_out=timed_out & ~fell & ~broken, broken=broken)

    def _hold(self) -> None:
        torque = self.assist * upright_torque(self.backend.state())
        wrench = torch.cat([torch.zeros_like(torque), torque], -1)
        self.backend.push(torch.arange(self.num_envs), self.skeleton.bodies[0], wrench)

    def let_go(self) -> None:
        """End the assistance for good: no torque is left behind."""
        self.assist = 0.0
        self.backend.push(torch.arange(self.num_envs), self.skeleton.bodies[0], torch.zeros(self.num_envs, 6))

    def state(self) -> CharacterState:
        return self.backend.state()

    def obs(self) -> Tensor:
        """(N, 13 + 2 J)."""
        return proprioception(self.backend.state())

    def windows(self) -> Tensor:
        """Style windows up to now, (N, W * F)."""
        return self.frames.flatten(1)

    def snapshot(self) -> dict[str, Tensor]:
        """Everything `restore` needs to go on bit for bit."""
        own = {name: getattr(self, name).clone() for name in ("age", "clip", "states", "frames")}
        counters = {
            "broken": torch.tensor(self.broken),
            "assist": torch.tensor(self.assist, dtype=torch.float64),
            "rng": self._rng.get_state(),
        }
        return {**{f"{ENGINE}{k}": v for k, v in self.backend.snapshot().items()}, **own, **counters}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        self.backend.restore({k.removeprefix(ENGINE): v for k, v in snapshot.items() if k.startswith(ENGINE)})
        for name in ("age", "clip", "states", "frames"):
            setattr(self, name, snapshot[name].clone())
        self.broken, self.assist = int(snapshot["broken"]), float(snapshot["assist"])
        self._rng.set_state(snapshot["rng"])
