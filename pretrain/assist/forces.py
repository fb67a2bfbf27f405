"""Assist forces on the root: upright torque and drive force, or a pull towards the reference
pose.

Worlds that are up in a clip of steady velocity are held upright and driven at the clip's mean
velocity; all others are pulled towards the reference pose of their tracker, with the strength of
the get-up assistance where they are down or are to rise. Worlds in a switch to a clip of another
velocity are held upright and driven as well.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pretrain.assist.assistance import Assistance
from pretrain.assist.reference_tracker import ReferenceTracker, clamp_norm
from pretrain.characters.rotations import (
    from_heading_frame,
    heading_direction,
    to_heading_frame,
    up_axis,
)
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import CharacterEnv

UPRIGHT_STIFFNESS = 800.0  # N m / rad; gravity topples a standing body of 50 kg with 440 N m / rad
UPRIGHT_DAMPING = 60.0  # N m s / rad
DRIVE_GAIN = 150.0  # N s / m
MAX_DRIVE_FORCE = 400.0  # N


def upright_torque(state: CharacterState) -> Tensor:
    """Torque on the root, world frame, that turns its z axis up: (N,) states -> (N, 3) N m. The
    heading is free."""
    up = up_axis(state.root_rot)
    lean = torch.stack([up[..., 1], -up[..., 0], torch.zeros_like(up[..., 0])], -1)  # up x z
    level = torch.tensor([1.0, 1.0, 0.0])
    return UPRIGHT_STIFFNESS * lean - UPRIGHT_DAMPING * state.root_ang_vel * level


def drive_force(state: CharacterState, velocity: Tensor) -> Tensor:
    """Force on the root, world frame, towards `velocity` (N, 3) m/s of the heading frame: (N, 3)
    N, level."""
    heading = heading_direction(state.root_rot)
    level = torch.tensor([1.0, 1.0, 0.0])
    force = DRIVE_GAIN * level * (from_heading_frame(heading, velocity) - state.root_vel)
    return clamp_norm(force, MAX_DRIVE_FORCE)


def mean_velocities(library: MotionLibrary) -> Tensor:
    """Mean root velocity of each clip in the heading frame, (C, 3) m/s."""
    means: list[Tensor] = []
    for frames in library.clip_frames:
        state = unflatten(frames)
        heading = heading_direction(state.root_rot)
        means.append(to_heading_frame(heading, state.root_vel).mean(0))
    return torch.stack(means)


class AssistForces:
    """Pushes the roots of `env`'s characters with the strengths of `assistance`."""

    def __init__(self, env: CharacterEnv, assistance: Assistance, tracker: ReferenceTracker):
        self.env = env
        self.tracker = tracker
        self.assistance = assistance
        self._mean_velocities = mean_velocities(env.library)
        self._pushed = False  # in the step before

    def strength(self, clips: Tensor) -> Tensor:
        """Strength of the assistance in clips (N,), or of the get-up assistance where a world is
        down or is to rise, (N,); the latter is 0 without a reference."""
        falls = self.env.falls
        rises = falls.is_down | falls.ground.rising[clips]
        getup = self.tracker.has_reference * self.assistance.getup.strength[self.tracker.clip]
        return torch.where(rises, getup, self.assistance.curriculum.assist_strength[clips])

    def switch_strength(self, clips: Tensor) -> Tensor:
        """Strength of the assistance after a change of skill in worlds that follow clips (N,); 0
        where a world is down, (N,)."""
        return self.assistance.switches.strengths(clips) * ~self.env.falls.is_down

    def apply(self, clips: Tensor) -> None:
        """Push every root for the next control step, in which worlds follow clips (N,).

        After the assistance has ended, a zero force is applied once to clear the last one."""
        pushes = self.assistance.is_active
        if pushes or self._pushed:
            all_ids = torch.arange(self.env.num_envs)
            self.env.backend.push(all_ids, self.env.skeleton.bodies[0], self._wrench(clips))
        self._pushed = pushes

    def _wrench(self, clips: Tensor) -> Tensor:
        """Force and torque on every root, (N, 6) N and N m."""
        state = self.env.state()
        falls = self.env.falls
        strengths = self.assistance.curriculum.assist_strength
        begun_in = strengths[self.env.clip]
        strength = strengths[clips]
        drive = drive_force(state, self._reference_velocities(clips))
        upright = upright_torque(state)
        # An episode begun in an assisted clip is held upright under a learned clip's latent too:
        # the policy cannot yet keep its balance in the states that it comes from.
        torque = torch.maximum(begun_in, strength)[:, None] * upright
        wrench = torch.cat([strength[:, None] * drive, torque], -1)
        pulled = (falls.is_down | ~falls.ground.steady[clips]).nonzero()[:, 0]
        wrench[pulled] = self.strength(clips)[pulled, None] * self.tracker.wrench(
            pulled, state[pulled]
        )
        return wrench + self.switch_strength(clips)[:, None] * torch.cat([drive, upright], -1)

    def _reference_velocities(self, clips: Tensor) -> Tensor:
        """Mean velocities of clips (N,), blended with those of the previous clips, (N, 3) m/s."""
        blend = self.tracker.blend
        previous = self._mean_velocities[blend.clip]
        return torch.lerp(previous, self._mean_velocities[clips], blend.share[:, None])

    def snapshot(self) -> dict[str, Any]:
        return {"pushed": torch.tensor(self._pushed)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._pushed = bool(snapshot["pushed"])
