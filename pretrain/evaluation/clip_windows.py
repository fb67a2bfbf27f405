"""Coverage: the share of the clips that rollouts pass by. Collapse is visible here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pretrain.ase.style import demonstrations
from pretrain.motion.clip import CONTROL_RATE, MotionClip
from pretrain.motion.library import MotionLibrary, pack
from pretrain.sim.blocks import row_blocks
from pretrain.sim.features import LEAST_SPREAD


@dataclass(frozen=True)
class ClipWindows:
    """A clip's windows as normalised features, and how close a rollout must pass by to have covered one."""

    name: str
    windows: Tensor  # (M, W * F)
    tau: float


def coverage_targets(
    clips: tuple[MotionClip, ...], library: MotionLibrary, window: int
) -> tuple[list[ClipWindows], Tensor]:
    """Per clip (mirrors left out) its windows and tau; and the scale (W * F) that features are divided by.

    tau is the 95th percentile, over the clip's windows, of the distance to the nearest window of the same clip that
    does not overlap it in time, or of its mirror image: how far apart two instances of one motion lie.
    """
    skeleton = clips[0].skeleton
    scale = demonstrations(library, skeleton, window).windows.std(0).clamp_min(LEAST_SPREAD)
    targets = []
    for clip in clips:
        if clip.mirror_of:
            continue
        pair = pack((clip, clip.mirrored()), (1.0, 1.0))
        demos = demonstrations(pair, skeleton, window, rate=CONTROL_RATE)
        features = demos.windows / scale
        own, mirror = features[demos.clip == 0], features[demos.clip == 1]
        targets.append(ClipWindows(clip.name, own, _tau(own, mirror, window)))
    return targets, scale


def _tau(own: Tensor, mirror: Tensor, window: int) -> float:
    nearest: list[Tensor] = []
    index = torch.arange(len(own))
    for rows in row_blocks(index, len(own)):
        overlap = (rows[:, None] - index).abs() < window
        apart = torch.cdist(own[rows], own).masked_fill_(overlap, torch.inf).amin(1)
        nearest.append(torch.minimum(apart, torch.cdist(own[rows], mirror).amin(1)))
    return float(torch.cat(nearest).quantile(0.95))


class Coverage:
    """Nearest distance that any rollout has come to each window of each clip."""

    def __init__(self, targets: list[ClipWindows], scale: Tensor):
        self.targets, self.scale = targets, scale
        self._all = torch.cat([target.windows for target in targets])
        self._nearest = torch.full((len(self._all),), torch.inf)

    def see(self, windows: Tensor) -> None:
        """Style windows (n, W * F) that rollouts went through."""
        if len(windows):
            seen = windows / self.scale
            parts = [torch.cdist(part, seen).amin(1) for part in row_blocks(self._all, len(seen))]
            self._nearest = torch.minimum(self._nearest, torch.cat(parts))

    def per_clip(self) -> dict[str, float]:
        """Share of each clip's windows that a rollout passed within tau of."""
        parts = self._nearest.split([len(target.windows) for target in self.targets])
        pairs = zip(self.targets, parts, strict=True)
        return {target.name: float((near <= target.tau).float().mean()) for target, near in pairs}
