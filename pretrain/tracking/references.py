"""References: the clips as motions that go on. A cyclic clip is repeated, each lap from where the
one before ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pretrain.characters.rotations import (
    from_axis_angle,
    heading_direction,
    multiply,
    rotate,
)
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame

# Mean distance of the key bodies from where they are in the first frame, relative to the root,
# below which the last frame of a clip leads to the first. Walks of one cycle have up to 0.10 m, the
# run 0.13 m, a kick 0.23 m.
CYCLE_DISTANCE = 0.15  # m


@dataclass(frozen=True)
class References:
    """`yaw` and `offset` place each lap of each clip: a turn about the world's z axis, then a
    horizontal displacement."""

    library: MotionLibrary
    cyclic: Tensor  # (C,) bool
    yaw: Tensor  # (C, L) rad
    offset: Tensor  # (C, L, 3) m

    def at(self, clips: Tensor, times: Tensor) -> CharacterState:
        """States of `clips` (...) at `times` (...) s. Beyond its end a cyclic clip is repeated, of
        any other the last frame is held."""
        durations = self.library.durations[clips]
        laps = torch.where(self.cyclic[clips], (times / durations).floor().long(), 0)
        laps = laps.clamp(0, self.yaw.shape[1] - 1)
        state = self.library.at(clips, times - laps * durations)
        turn = from_axis_angle("z", self.yaw[clips, laps])
        return replace(
            state,
            root_pos=rotate(turn, state.root_pos) + self.offset[clips, laps],
            root_rot=multiply(turn, state.root_rot),
            root_vel=rotate(turn, state.root_vel),
            root_ang_vel=rotate(turn, state.root_ang_vel),
        )

    def ended(self, clips: Tensor, times: Tensor) -> Tensor:
        """Whether `clips` (...) are over at `times` (...) s, (...) bool; cyclic ones never are."""
        return ~self.cyclic[clips] & (times >= self.library.durations[clips])


def make_references(library: MotionLibrary, skeleton: Skeleton, seconds: float) -> References:
    """The references of episodes of at most `seconds`, begun anywhere in a clip."""
    states = unflatten(library.frames)
    first = states[library.starts]
    last = states[library.starts + library.lengths - 1]
    num_keys = len(skeleton.key_bodies)
    moved = style_frame(skeleton, last) - style_frame(skeleton, first)
    keys = moved[:, -3 * num_keys :].view(-1, num_keys, 3)
    cyclic = keys.norm(dim=-1).mean(-1) < CYCLE_DISTANCE
    laps = 2 + int(seconds / float(library.durations.min()))
    yaw, offset = _place_laps(first, last, laps)
    return References(library, cyclic, yaw, offset)


def _place_laps(first: CharacterState, last: CharacterState, laps: int) -> tuple[Tensor, Tensor]:
    """Yaw (C, `laps`) and offset (C, `laps`, 3) of each lap, the first of which is in place: each
    begins with the root of `first` (C,) where that of `last` (C,) was at the end of the one
    before."""
    angle = _yaw(last) - _yaw(first)
    turn = from_axis_angle("z", angle)
    level = torch.tensor([1.0, 1.0, 0.0])
    step = level * (last.root_pos - rotate(turn, first.root_pos))
    offsets = [torch.zeros_like(step)]
    for _ in range(laps - 1):
        offsets.append(rotate(turn, offsets[-1]) + step)
    return angle[:, None] * torch.arange(laps), torch.stack(offsets, 1)


def _yaw(state: CharacterState) -> Tensor:
    """Heading of states (C,), (C,) rad."""
    heading = heading_direction(state.root_rot)
    return torch.atan2(heading[:, 1], heading[:, 0])
