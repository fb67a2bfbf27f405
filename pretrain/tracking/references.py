"""References: the clips as motions that go on. A cyclic clip is repeated, each lap from where the
one before ended."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.characters.placement import place
from pretrain.characters.rotations import from_axis_angle, heading_direction, rotate
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.library import MotionLibrary
from pretrain.sim.features import style_frame
from pretrain.tracking.config import DeepMimicConfig
from pretrain.tracking.deepmimic_reward import deepmimic_reward, joint_weights
from pretrain.tracking.pose import make_pose

# DeepMimic's reward, with its default weights, of a clip's last frame against its first, above
# which the clip is cyclic. Stands and steps on the spot have 0.98 to 1.00, walks of one cycle 0.83
# to 0.95; a start from a stand has 0.77, runs 0.61 to 0.70, a kick 0.49.
CYCLE_REWARD = 0.8


@dataclass(frozen=True)
class References:
    """`yaw` and `offset` place each lap of each clip: a turn about the world's z axis, then a
    horizontal displacement."""

    library: MotionLibrary
    cyclic: Tensor  # (C,) bool
    yaw: Tensor  # (C, L) rad
    offset: Tensor  # (C, L, 3) m

    def at(self, clips: Tensor, times: Tensor) -> CharacterState:
        """States of `clips` (...) at `times` (...) s. Beyond its end a cyclic clip is repeated, up
        to its last lap; of any other the last frame is held."""
        durations = self.library.durations[clips]
        laps = torch.where(self.cyclic[clips], (times / durations).floor().long(), 0)
        laps = laps.clamp(0, self.yaw.shape[1] - 1)
        state = self.library.at(clips, times - laps * durations)
        turn = from_axis_angle("z", self.yaw[clips, laps])
        return place(state, turn, self.offset[clips, laps])

    def ended(self, clips: Tensor, times: Tensor) -> Tensor:
        """Whether `clips` (...) are over at `times` (...) s, (...) bool; cyclic ones never are."""
        return ~self.cyclic[clips] & (times >= self.library.durations[clips])


def make_references(
    library: MotionLibrary,
    skeleton: Skeleton,
    seconds: float,
    joint_err_w: tuple[float, ...] = DeepMimicConfig().joint_err_w,
) -> References:
    """References that go on for `seconds` from anywhere in a clip. Whether a clip is cyclic is
    measured by DeepMimic's reward with its usual scales and `joint_err_w`."""
    states = unflatten(library.frames)
    first = states[library.starts]
    last = states[library.starts + library.lengths - 1]
    laps = 2 + int(seconds / float(library.durations.min()))
    yaw, offset = _place_laps(first, last, laps)
    second_lap = place(first, from_axis_angle("z", yaw[:, 1]), offset[:, 1])
    cfg = DeepMimicConfig(joint_err_w=joint_err_w)
    similarity = deepmimic_reward(
        make_pose(skeleton, last, style_frame(skeleton, last)),
        make_pose(skeleton, second_lap, style_frame(skeleton, second_lap)),
        cfg,
        skeleton,
        joint_weights(cfg, skeleton),
    )
    return References(library, similarity > CYCLE_REWARD, yaw, offset)


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
