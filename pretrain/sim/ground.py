"""What each clip does with the ground: which bodies it puts there, how low it gets, and whether it rises from lying."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.kinematics import lowest_points
from pretrain.characters.rotations import facing, into_heading, up_axis
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import unflat
from pretrain.motion.library import MotionLibrary

NEAR = 0.03  # m above the ground, or above the lowest body where that has sunk in: a body there is on it
LYING = 0.5  # root height over the usual one: who is lower lies
SLACK = 0.85  # of the least root height of a clip: lower than that, it is not performed any more
LEAN = 0.5  # least cosine between the root's z axis and the vertical, in a clip that is upright throughout
UNEVEN = 0.5  # most spread of the level velocity over its mean, in the heading frame, in a clip that moves on steadily


@dataclass(frozen=True)
class Ground:
    """C clips over B bodies."""

    allowed: Tensor  # (C, B) bool: it may be on the ground
    lowest: Tensor  # (C,) m, root height that is still the clip's
    rising: Tensor  # (C,) bool: it begins lying and ends standing, and what counts of it is the end
    upright: Tensor  # (C,) bool: its root never leans far
    steady: Tensor  # (C,) bool: it leans no further than asked, and does nothing but move on evenly, as in a walk
    standing: float  # m, the usual root height


def ground_of(library: MotionLibrary, skeleton: Skeleton, steady_above: float = LEAN) -> Ground:
    """Read from the clips. Feet are always allowed, what one side does is allowed to the other, and in a clip that lies
    but does not rise, everything is. `steady_above` is LEAN for the clips that are to count as steady, if it is more."""
    feet = torch.tensor([body in skeleton.feet for body in skeleton.bodies])
    standing = float(library.frames[:, 2].median())
    allowed, lowest, rising, upright, steady = [], [], [], [], []
    for frames in library.frames.split(library.lengths.tolist()):
        state = unflat(frames)
        height = state.root_pos[:, 2]
        lies = bool(height.min() < LYING * standing)
        rises = bool(height[0] < LYING * standing) and bool(height[-1] > SLACK * standing)
        points = lowest_points(skeleton, state)
        touched = (points < points.amin(-1, keepdim=True).clamp_max(0) + NEAR).any(0)
        both = touched | touched[list(skeleton.mirrored_bodies)]
        allowed.append(feet if rises else torch.ones_like(feet) if lies else feet | both)
        lowest.append(SLACK * (height[-1] if rises else height.min()))
        rising.append(rises)
        up = up_axis(state.root_rot)[:, 2]
        upright.append(bool((up > LEAN).all()))
        level = into_heading(facing(state.root_rot), state.root_vel)[:, :2]
        steady.append(
            bool((up > max(LEAN, steady_above)).all()) and bool(level.std(0).norm() < UNEVEN * level.mean(0).norm())
        )
    flags = torch.tensor(rising), torch.tensor(upright), torch.tensor(steady)
    return Ground(torch.stack(allowed), torch.stack(lowest), *flags, standing)
