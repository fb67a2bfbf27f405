"""Ground contact of each clip: which bodies it puts on the ground, how low it gets, and whether it
rises from lying."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.kinematics import lowest_points
from pretrain.characters.rotations import up_axis
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.sim.velocity_range import level_velocity

# m above the ground, or above the lowest body where that penetrates it, counts as contact
NEAR = 0.03
LYING = 0.5  # share of the usual root height below which a character lies
SLACK = 0.85  # share of a clip's least root height below which it is no longer performed
# least cosine between the root's z axis and the vertical, in a clip that is upright throughout
LEAN = 0.5
# and in a steady one: a clip that leans into its speed, as a run, is pulled to its poses instead of
# being held upright
STEADY = 0.95
SLOWEST = 0.5  # m/s, mean level velocity of a steady clip: a slower one steps on the spot
UNEVEN = 0.5  # largest std over mean of the level velocity, heading frame, in a steady clip


@dataclass(frozen=True)
class Ground:
    """C clips over B bodies."""

    allowed: Tensor  # (C, B) bool: the body may be on the ground
    lowest: Tensor  # (C,) m, lowest root height of the clip, with SLACK
    # (C,) bool: it begins lying and ends standing; `lowest` and `allowed` are of its end
    rising: Tensor
    upright: Tensor  # (C,) bool: its root never leans far
    steady: Tensor  # (C,) bool: it leans little and moves at a steady velocity, as in a walk
    standing: float  # m, the usual root height


def touches_beyond_feet(touching: Tensor, skeleton: Skeleton) -> Tensor:
    """Worlds in which a body other than a foot is on the ground, from `touching` (N, B) bool, (N,)
    bool."""
    return (touching & ~torch.tensor(skeleton.is_foot)).any(-1)


def read_ground(library: MotionLibrary, skeleton: Skeleton) -> Ground:
    """Read from the clips.

    Feet are always allowed, the other side of an allowed body is allowed, and in a clip that lies
    and does not rise every body is.
    """
    feet = torch.tensor(skeleton.is_foot)
    standing = float(library.frames[:, 2].median())
    rising: list[bool] = []
    allowed: list[Tensor] = []
    lowest: list[Tensor] = []
    upright: list[bool] = []
    steady: list[bool] = []
    for frames in library.clip_frames:
        state = unflatten(frames)
        height = state.root_pos[:, 2]
        lies = bool(height.min() < LYING * standing)
        rises = bool(height[0] < LYING * standing) and bool(height[-1] > SLACK * standing)
        rising.append(rises)
        lowest.append(SLACK * (height[-1] if rises else height.min()))
        if rises:
            allowed.append(feet)
        else:
            allowed.append(torch.ones_like(feet) if lies else feet | _touched(skeleton, state))
        up = up_axis(state.root_rot)[:, 2]
        upright.append(bool((up > LEAN).all()))
        steady.append(bool((up > STEADY).all()) and _moves_steadily(state))
    return Ground(
        torch.stack(allowed),
        torch.stack(lowest),
        rising=torch.tensor(rising),
        upright=torch.tensor(upright),
        steady=torch.tensor(steady),
        standing=standing,
    )


def _touched(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """Bodies that are on the ground in some frame of `state` (T,), on either side, (B,) bool."""
    points = lowest_points(skeleton, state)
    touched = (points < points.amin(-1, keepdim=True).clamp_max(0) + NEAR).any(0)
    return touched | touched[list(skeleton.mirrored_bodies)]


def _moves_steadily(state: CharacterState) -> bool:
    """Whether the level velocity of `state` (T,) varies little in the heading frame."""
    level = level_velocity(state)[:, :2]
    mean = level.mean(0).norm()
    return bool(mean > SLOWEST and level.std(0).norm() < UNEVEN * mean)
