"""Clip windows: the style windows of a clip, and the distance within which a rollout is on it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.ase.reference_windows import make_reference_windows
from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import unflatten
from pretrain.evaluation.limb_speed import required_limb_speed
from pretrain.evaluation.tolerance import repeat_distance, step_distance
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.library import MotionLibrary, pack
from pretrain.sim.features import measure_std
from pretrain.sim.small_error import small_error


@dataclass(frozen=True)
class ClipWindows:
    """A clip's windows as features over their scale, and its tolerance `tau` in those units."""

    name: str
    windows: Tensor  # (M, W * F)
    tau: float
    limb_speed: float  # m/s, required of a body that performs it

    def within(self, windows: Tensor) -> Tensor:
        """Which of `windows` (n, W * F), over their scale, are within tau of the clip, (n,)
        bool."""
        return torch.cdist(windows, self.windows).amin(1) <= self.tau


def feature_scale(library: MotionLibrary, skeleton: Skeleton, window: int) -> Tensor:
    """Scale of each feature of a style window: its std over all clips, (W * F)."""
    return measure_std(make_reference_windows(library, skeleton, window).windows)


def clip_windows(
    clips: tuple[MotionClip, ...], scale: Tensor, window: int
) -> tuple[ClipWindows, ...]:
    """The windows and tolerance of each clip that is no mirror image, in the order of `clips`.

    tau is the distance between two instances of one motion (`repeat_distance`), but at least that
    of a body 2 cm and 0.05 rad off (`small_error`) and that of one control step
    (`step_distance`): windows of a stand, or of one repeated cycle, are nearer to each other than
    a simulated body can get."""
    skeleton = clips[0].skeleton
    targets = []
    for clip in clips:
        if clip.mirror_of:
            continue
        pair = pack((clip, clip.mirrored()), (1.0, 1.0))
        demos = make_reference_windows(pair, skeleton, window, rate=CONTROL_RATE)
        features = demos.windows.div_(scale)
        original = features[demos.clip == 0]
        states = unflatten(pair.frames[: pair.lengths[0]])
        repeat = repeat_distance(original, features[demos.clip == 1], window)
        floor = small_error(skeleton, states, scale, window)
        tau = max(repeat, floor, step_distance(original))
        moves = required_limb_speed(original * scale, skeleton)
        targets.append(ClipWindows(clip.name, original, tau, moves))
    return tuple(targets)
