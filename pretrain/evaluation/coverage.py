"""Coverage: the share of each clip's windows that some rollout passed near."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pretrain.evaluation.clip_windows import ClipWindows
from pretrain.sim.row_blocks import row_blocks


class Coverage:
    """Smallest distance of any rollout to each window of each clip."""

    def __init__(self, targets: Sequence[ClipWindows], scale: Tensor):
        self.targets = targets
        self.scale = scale
        self._all = torch.cat([target.windows for target in targets])
        self._nearest = torch.full((len(self._all),), torch.inf)

    def update(self, windows: Tensor) -> None:
        """Add style windows (n, W * F) of rollouts."""
        if len(windows):
            passed = windows / self.scale
            blocks = row_blocks(self._all, len(passed))
            nearest = torch.cat([torch.cdist(block, passed).amin(1) for block in blocks])
            self._nearest = torch.minimum(self._nearest, nearest)

    def per_clip(self) -> dict[str, float]:
        """Share of each clip's windows within tau of a rollout."""
        parts = self._nearest.split([len(target.windows) for target in self.targets])
        pairs = zip(self.targets, parts, strict=True)
        return {clip.name: float((near <= clip.tau).float().mean()) for clip, near in pairs}
