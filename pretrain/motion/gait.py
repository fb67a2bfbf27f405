"""Gait of a clip: cadence and step length, and the playback rate they suggest. Numpy only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain.characters import rotations
from pretrain.characters.skeleton import Skeleton
from pretrain.motion.balance import GRAVITY
from pretrain.motion.clip import MotionClip
from pretrain.motion.poses import bone_length, foot_poses, limb_of
from pretrain.motion.soles import contacts, soles_of

# m/s, below which no gait is read; 120 Hz read as 30 Hz leaves 0.2 of a walk of 0.8
SLOWEST = 0.15
UNEVEN = 0.15  # std over mean of the steps' times, above which the gait is not steady
FEWEST = 3  # times that a foot passes the other, at least
GROUNDED = 0.02  # share of the frames that may have no foot on the ground in a walk
# Step length over cadence is nearly the same at every speed of a walk (Sekiya and Nagasaki 1998:
# 0.0065 m a step/min, which is 0.39 m s), and a clip played k times as fast has 1/k of it. In units
# of L^1.5 / g^0.5, L the length of the leg; the public walks have 1.2 to 1.9.
WALK_RATIO = 1.55
MAX_WALK_RATIO = 2.2  # above it, a walk is in slow motion
MIN_WALK_RATIO = 1.04  # below it a fast walk is in quick motion; slow ones may take short steps
FAST = 0.17  # Froude number (v^2 / g L), above which steps are not shuffled
QUICK = 0.79  # steps in L^0.5 / g^0.5, above which a walk would be a run


@dataclass(frozen=True)
class Gait:
    """A steady gait; SI units."""

    speed: float  # m/s along its mean direction
    cadence: float  # steps/s
    flight: float  # share of frames without a foot on the ground
    leg: float  # m, from hip to ankle

    @property
    def step(self) -> float:
        """Length of a step, m."""
        return self.speed / self.cadence

    @property
    def walk_ratio(self) -> float:
        """Step length over cadence, in units of L^1.5 / g^0.5."""
        return self.step / self.cadence * (GRAVITY / self.leg**3) ** 0.5

    @property
    def froude(self) -> float:
        """Speed in units of (g L)^0.5, squared."""
        return self.speed**2 / (GRAVITY * self.leg)


def read_gait(clip: MotionClip) -> Gait | None:
    """The gait of a clip, None where it is not steady."""
    facing = rotations.heading_direction(clip.root_rot)
    moved = rotations.to_heading_frame(facing[:-1], np.diff(clip.root_pos, axis=0))
    velocity = moved[:, :2].mean(0) * clip.fps
    speed = float(np.linalg.norm(velocity))
    if speed < SLOWEST:
        return None
    left, right = foot_poses(clip)[0].values()
    ahead = rotations.to_heading_frame(facing, left - right)[:, :2] @ (velocity / speed)
    passes = np.flatnonzero(ahead[1:] * ahead[:-1] < 0)
    steps = np.diff(passes) / clip.fps
    if len(passes) < FEWEST or steps.std() > UNEVEN * steps.mean():
        return None
    flight = float((~contacts(soles_of(clip)).any(-1)).mean())
    return Gait(speed, float(1 / np.median(steps)), flight, _leg_length(clip.skeleton))


def suggested_speed(gait: Gait | None) -> float:
    """Factor of the playback speed at which a walk steps like a person; 1 for a plausible rate, and
    for runs, which are judged by their flights (`plausible_fall`)."""
    if gait is None or gait.flight > GROUNDED:
        return 1.0
    quick = gait.cadence * (gait.leg / GRAVITY) ** 0.5 > QUICK and gait.froude > FAST
    if gait.walk_ratio > MAX_WALK_RATIO or (quick and gait.walk_ratio < MIN_WALK_RATIO):
        return gait.walk_ratio / WALK_RATIO
    return 1.0


def _leg_length(skeleton: Skeleton) -> float:
    foot = skeleton.feet[0]
    return bone_length(skeleton, limb_of(skeleton, foot)[1]) + bone_length(skeleton, foot)
